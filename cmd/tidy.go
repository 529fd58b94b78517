package cmd

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// tidyEvery is how often a process looks at its memory.
	tidyEvery = 20 * time.Second
	// quietBytes is what a process allocates at most between two looks while there is nothing to do
	// for it.
	quietBytes = 32 << 20
	// worthBytes is how much has to be there to be given back, and an eighth of what is in use
	// besides.
	worthBytes = 16 << 20
)

// heap is what the Go runtime says of its memory, in bytes.
type heap struct {
	live      uint64 // in use when garbage was last collected
	objects   uint64 // in use now, with garbage
	idle      uint64 // held for what comes next
	allocated uint64 // since the process began
}

func readHeap() heap {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(s)
	return heap{s[0].Value.Uint64(), s[1].Value.Uint64(), s[2].Value.Uint64(), s[3].Value.Uint64()}
}

// looks are what the last three looks at the heap saw, the newest first.
type looks [3]heap

// worthTidying tells whether a process that has little to do holds much memory that it does not
// use. It also does where much was to do until the look before: how much of what was in use then
// has become garbage is not known before it is collected.
func (l looks) worthTidying() bool {
	now := l[0]
	spare := now.idle
	if now.objects > now.live {
		spare += now.objects - now.live
	}
	return l.quiet(0) && (spare > worthBytes+now.live/8 || !l.quiet(1))
}

// quiet tells whether there was little to do between a look and the one before it.
func (l looks) quiet(at int) bool { return l[at].allocated-l[at+1].allocated <= quietBytes }

// tidy gives memory back when the work is done that it was needed for, until ctx ends. The Go
// runtime by itself collects garbage after two minutes, and keeps what a cascade has left behind
// for the next one; a container's limit counts both.
func tidy(ctx context.Context) error {
	tick := time.NewTicker(tidyEvery)
	defer tick.Stop()
	for l := (looks{readHeap()}); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		l = looks{readHeap(), l[0], l[1]}
		if l.worthTidying() {
			debug.FreeOSMemory()
			l[0] = readHeap()
		}
	}
}
