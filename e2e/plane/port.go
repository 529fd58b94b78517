package plane

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
)

// Ports come from below the range from which the kernel takes the local ends
// of outgoing connections (32768 and up on Linux). A port the kernel gave out
// itself may be taken again by any client before the child has bound it, or
// while the API server restarts.
const (
	firstPort = 20000
	lastPort  = 32000
)

var givenPorts struct {
	sync.Mutex
	used map[int]bool
}

// FreePort is a loopback port that nothing listens on, and that this process
// has not given out before.
func FreePort() (int, error) {
	givenPorts.Lock()
	defer givenPorts.Unlock()
	if givenPorts.used == nil {
		givenPorts.used = map[int]bool{}
	}
	for range 1000 {
		port := firstPort + rand.IntN(lastPort-firstPort)
		if givenPorts.used[port] {
			continue
		}
		l, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		l.Close()
		givenPorts.used[port] = true
		return port, nil
	}
	return 0, errors.New("find a free port: none in 1000 tries")
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}
