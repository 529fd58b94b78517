package cmd

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestMemoryIsGivenBackWhenThereIsMuchOfItAndLittleToDo(t *testing.T) {
	const mb = 1 << 20
	for name, c := range map[string]struct {
		live, objects, idle, allocated, earlier uint64 // in MB; allocated since the look before, and between that and the one before it
		want                                    bool
	}{
		"nothing to give back":                 {10, 20, 5, 1, 1, false},
		"much garbage":                         {10, 100, 5, 1, 1, true},
		"much that is idle":                    {10, 10, 100, 1, 1, true},
		"but there is work":                    {10, 100, 100, 100, 1, false},
		"little of what is in use":             {400, 450, 10, 1, 1, false},
		"a good part of what is in use":        {400, 450, 100, 1, 1, true},
		"less in use than when it was cleaned": {100, 50, 10, 1, 1, false},
		"the work has just ended":              {30, 32, 5, 1, 100, true},
		"the work goes on":                     {30, 32, 5, 100, 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			const begun = 7
			l := looks{
				{c.live * mb, c.objects * mb, c.idle * mb, (begun + c.earlier + c.allocated) * mb},
				{allocated: (begun + c.earlier) * mb},
				{allocated: begun * mb},
			}
			if got := l.worthTidying(); got != c.want {
				t.Errorf("%t, want %t", got, c.want)
			}
		})
	}
}

// TestHeapIsReadAsTheRuntimeTellsIt: the names of metrics are strings.
func TestHeapIsReadAsTheRuntimeTellsIt(t *testing.T) {
	runtime.GC() // garbage of other tests would go meanwhile
	before := readHeap()
	held := make([]byte, 64<<20)
	with := readHeap()
	if grown := with.objects - before.objects; with.objects < before.objects || grown < 60<<20 {
		t.Errorf("%d bytes are in use, and %d were before 64 MB", with.objects, before.objects)
	}
	if with.allocated-before.allocated < uint64(len(held)) {
		t.Errorf("%d bytes were allocated", with.allocated-before.allocated)
	}
	runtime.KeepAlive(held) // and it is garbage
	debug.FreeOSMemory()
	if after := readHeap(); after.objects >= with.objects || after.idle > with.objects {
		t.Errorf("%d bytes are in use and %d idle after 64 MB went", after.objects, after.idle)
	}
}
