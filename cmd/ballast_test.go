package cmd

import (
	"runtime"
	"runtime/metrics"
	"testing"

	"github.com/prometheus/procfs"
)

func heapGoal() uint64 {
	runtime.GC()
	s := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func resident(t *testing.T) int {
	t.Helper()
	self, err := procfs.Self()
	if err != nil {
		t.Fatal(err)
	}
	stat, err := self.Stat()
	if err != nil {
		t.Fatal(err)
	}
	return stat.ResidentMemory()
}

func TestBallastLetsGarbagePileUpAndTakesNoMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	without, before := heapGoal(), resident(t)
	drop := ballast()
	with, after := heapGoal(), resident(t)
	drop()
	if more := int(with) - int(without); more < ballastSize {
		t.Errorf("garbage is collected at %d bytes, without ballast at %d", with, without)
	}
	if more := after - before; more > ballastSize/2 {
		t.Errorf("the ballast takes %d bytes of memory", more)
	}
}

func TestWhoSetsTheCollectorGetsNoBallast(t *testing.T) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GOGC", "")
			t.Setenv("GOMEMLIMIT", "")
			t.Setenv(name, "200")
			without := heapGoal()
			drop := ballast()
			with := heapGoal()
			drop()
			if more := int(with) - int(without); more > ballastSize/2 {
				t.Errorf("%d bytes of ballast", more)
			}
		})
	}
}
