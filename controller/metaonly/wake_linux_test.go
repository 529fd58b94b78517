package metaonly

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestNoWakingForAConnectionThatIsLeftAlone: the system does not tell of what comes meanwhile, and
// tells of it afterwards, so nothing is lost.
func TestNoWakingForAConnectionThatIsLeftAlone(t *testing.T) {
	server, client := pair(t)
	if _, err := server.Write(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if !ready(t, client, 10*time.Second) {
		t.Fatal("100 bytes have come, and the system does not tell of them")
	}
	wakeFor(client, most)
	if ready(t, client, 0) {
		t.Error("the system tells of 100 bytes that are left alone")
	}
	wakeFor(client, 1)
	if !ready(t, client, 0) {
		t.Error("the system does not tell of 100 bytes that are no longer left alone")
	}

	wakeFor(client, most)
	if _, err := server.Write(make([]byte, most)); err != nil {
		t.Fatal(err)
	}
	if !ready(t, client, 10*time.Second) {
		t.Error("as much has come as one read brings, and the system does not tell of it")
	}
	wakeFor(client, 1)
}

// TestSystemIsToldThatAConnectionIsLeftAlone while it is, and no longer.
func TestSystemIsToldThatAConnectionIsLeftAlone(t *testing.T) {
	server, client := pair(t)
	if _, err := server.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if !ready(t, client, 10*time.Second) {
		t.Fatal("a byte has come, and the system does not tell of it")
	}
	c := &conn{Conn: client, buffer: make([]byte, most), quiet: time.Now().Add(gather)}
	if c.leaveAlone(); !ready(t, client, 0) {
		t.Error("the system does not tell of a byte that is no longer left alone")
	}
	if n, err := c.Read(make([]byte, most)); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v", n, err)
	}
	if _, err := server.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if !ready(t, client, 10*time.Second) {
		t.Fatal("another byte has come, and the system does not tell of it")
	}
	c.quiet = time.Now().Add(time.Minute)
	go c.leaveAlone() // for longer than the test runs
	for end := time.Now().Add(10 * time.Second); ready(t, client, 0); {
		if time.Now().After(end) {
			t.Fatal("the system still tells of a byte that is left alone")
		}
	}
}

// pair are the two ends of a connection.
func pair(t *testing.T) (server, client net.Conn) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }() // it has one connection, or the test has failed
	if client, err = (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server, client
}

// ready tells whether the system tells of data on a connection within some time, in the way in
// which Go's runtime waits for it.
func ready(t *testing.T, c net.Conn, within time.Duration) bool {
	t.Helper()
	raw, err := c.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	poll, err := syscall.EpollCreate1(0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Close(poll) }() // nothing is in it
	n := 0
	if controlErr := raw.Control(func(fd uintptr) {
		if err = syscall.EpollCtl(poll, syscall.EPOLL_CTL_ADD, int(fd),
			&syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}); err == nil {
			for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
				n, err = syscall.EpollWait(poll, make([]syscall.EpollEvent, 1), int(within/time.Millisecond))
			}
		}
	}); controlErr != nil || err != nil {
		t.Fatal(controlErr, err)
	}
	return n > 0
}
