package metaonly

import (
	"net"
	"syscall"
)

// wakeFor has the process woken for what a connection brings when there are so many bytes. The
// runtime waits for all connections at once, and so would be woken for each piece that comes while
// this one is left alone. Where that cannot be set nothing is lost by it.
func wakeFor(c net.Conn, bytes int) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // of a connection that was closed; whoever reads learns of it
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
	})
}
