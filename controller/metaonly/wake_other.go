//go:build !linux

package metaonly

import "net"

// wakeFor does nothing: it has not been tried on this system.
func wakeFor(net.Conn, int) {}
