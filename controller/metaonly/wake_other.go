//go:build !linux

package metaonly

import "net"

// wakeFor does nothing: how it would be done here has not been tried.
func wakeFor(net.Conn, int) {}
