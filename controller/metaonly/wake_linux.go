package metaonly

import (
	"net"
	"syscall"
)

// wakeFor has the process woken for a connection only when it has so many bytes. The runtime polls
// all connections at once, and would wake for each piece that comes while this one is not read.
// Where it cannot be set, nothing is lost.
func wakeFor(c net.Conn, bytes int) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // fails on a closed connection, which the reader notices
		_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVLOWAT, bytes)
	})
}
