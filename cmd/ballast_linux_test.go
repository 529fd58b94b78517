package cmd

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"syscall"
	"testing"
	"unsafe"
)

func heapGoal() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestBallastLetsGarbagePileUp(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	without := heapGoal()
	drop := ballast()
	with := heapGoal()
	drop()
	if more := int(with) - int(without); more < ballastSize {
		t.Errorf("garbage is collected at %d bytes, without ballast at %d", with, without)
	}
}

func TestWhoSetsTheCollectorGetsNoBallast(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "200")
			if b := newBallast(); b != nil {
				t.Errorf("%d bytes of ballast", len(b))
			}
		})
	}
}

// inProcess tells a process that the test below has started it.
const inProcess = "WEIR_TEST_BALLAST"

// The ballast is made when a process begins, whose memory was never written. So it is here.
func TestBallastTakesNoMemory(t *testing.T) {
	if os.Getenv(inProcess) == "" {
		process := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		process.Env = append(os.Environ(), inProcess+"=yes", "GOGC=", "GOMEMLIMIT=")
		if out, err := process.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	held := newBallast()
	runtime.GC()
	if n := resident(t, held); n > len(held)/8 {
		t.Errorf("%d of %d bytes of ballast are in memory", n, len(held))
	}
	for i := range held[:ballastSize/2] {
		held[i] = 1
	}
	if n := resident(t, held); n < len(held)/2 {
		t.Errorf("%d bytes in memory after %d were written to: this test sees nothing", n, ballastSize/2)
	}
}

// resident is how many bytes of a large slice are in memory, rather than only promised. Not what
// the process holds: the race detector keeps books about the slice.
func resident(t *testing.T, b []byte) int {
	t.Helper()
	page := os.Getpagesize()
	in := make([]byte, len(b)/page)
	if _, _, errno := syscall.Syscall(syscall.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&in[0]))); errno != 0 {
		t.Fatal(errno)
	}
	n := 0
	for _, p := range in {
		n += int(p&1) * page
	}
	return n
}
