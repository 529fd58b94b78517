//go:build full

package scale

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/e2e/load"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(milliseconds int) time.Time { return began.Add(time.Duration(milliseconds) * time.Millisecond) }

func TestLongestPause(t *testing.T) {
	for name, c := range map[string]struct {
		at          []int
		since, want int
	}{
		"nothing happens":                    {nil, 0, 0},
		"nothing happens after":              {[]int{1, 2, 3}, 3, 0},
		"it begins before and ends after":    {[]int{10, 20, 520, 530}, 100, 500},
		"it ends before":                     {[]int{0, 900, 910, 925}, 905, 15},
		"it begins after":                    {[]int{10, 20, 40, 940, 950}, 25, 900},
		"nothing happened before":            {[]int{700, 710}, 500, 200},
		"they come in any order":             {[]int{530, 10, 520, 20}, 100, 500},
		"what happens then counts as before": {[]int{100, 150}, 100, 50},
	} {
		t.Run(name, func(t *testing.T) {
			var times []time.Time
			for _, ms := range c.at {
				times = append(times, at(ms))
			}
			if got, want := LongestPause(times, at(c.since)), time.Duration(c.want)*time.Millisecond; got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func TestEach(t *testing.T) {
	for name, c := range map[string]struct {
		empty, full uint64
		n           int
		want        float64
	}{
		"more with them":       {100, 1100, 4, 250},
		"less with them":       {300, 200, 4, -25},
		"there are none":       {100, 200, 0, 0},
		"not a whole of bytes": {0, 5, 2, 2.5},
	} {
		if got := Each(c.empty, c.full, c.n); got != c.want {
			t.Errorf("%s: got %g, want %g", name, got, c.want)
		}
	}
}

func TestRate(t *testing.T) {
	for _, c := range []struct {
		n    int64
		took time.Duration
		want float64
	}{{100, time.Second, 100}, {100, 250 * time.Millisecond, 400}, {0, time.Second, 0}, {100, 0, 0}} {
		if got := Rate(c.n, c.took); got != c.want {
			t.Errorf("%d in %s: got %g, want %g", c.n, c.took, got, c.want)
		}
	}
}

func TestTreeHasTwoLevelsBelowItsRoot(t *testing.T) {
	for _, n := range []int{2, 3, 50, 100, 400, 20000} {
		tree := TreeOf(n)
		owns := map[int]int{}
		for i := 1; i < tree.Size(); i++ {
			o := tree.OwnerOf(i)
			owns[o]++
			if depth := map[bool]int{true: 1, false: 2}[o == 0]; o >= i || depth == 2 && tree.OwnerOf(o) != 0 {
				t.Errorf("of %d: %d is owned by %d, which %d owns", n, i, o, tree.OwnerOf(o))
			}
		}
		if tree.Size() != n || tree.OwnerOf(0) != -1 || owns[0] != tree.Middles {
			t.Errorf("of %d: %d objects, and %d of %d in the middle", n, tree.Size(), owns[0], tree.Middles)
		}
		for i := 1; i <= tree.Middles && n >= 100; i++ {
			if owns[i] < fanOut-1 || owns[i] > 2*fanOut+1 {
				t.Errorf("of %d: %d owns %d", n, i, owns[i])
			}
		}
	}
}

func TestTreesThatWereNotFinishedHaveFewerLeaves(t *testing.T) {
	const middles, leaves = 2, 5
	for name, c := range map[string]struct {
		missing []int
		want    int // leaves; 0: an error
	}{
		"all were made":         {nil, leaves},
		"the last was not":      {[]int{7}, 4},
		"one before the last":   {[]int{5}, 2},
		"several":               {[]int{4, 6}, 1},
		"no leaf was made":      {[]int{3, 4, 5, 6, 7}, 0},
		"not all in the middle": {[]int{2}, 0},
		"not even the root was": {[]int{0, 1, 2, 3, 4, 5, 6, 7}, 0},
	} {
		ns := &Namespace{Tree: Tree{middles, leaves}, Objects: make([]load.Object, 1+middles+leaves)}
		for i := range ns.Objects {
			if !slices.Contains(c.missing, i) {
				ns.Objects[i].UID = "made"
			}
		}
		err := ns.trim()
		if c.want == 0 && err == nil || c.want > 0 && (err != nil || ns.Tree.Leaves != c.want || len(ns.Objects) != ns.Tree.Size()) {
			t.Errorf("%s: %+v with %d objects, %v; want %d leaves", name, ns.Tree, len(ns.Objects), err, c.want)
		}
	}
}

func TestTemplatesAreTwentyKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, x := range Templates() {
		seen[x.GVR().GroupResource().String()] = true
	}
	if len(seen) != 20 || len(Custom()) != customKinds {
		t.Errorf("%d kinds, %d of them custom", len(seen), len(Custom()))
	}
	for _, kind := range Custom() {
		if kind.Group != "scale.weir.dev" {
			t.Errorf("%s is custom", kind)
		}
	}
}

func TestSamplesAreWrittenAsRates(t *testing.T) {
	samples := []Sample{
		{At: at(0), Phase: "populate", Made: 10, Memory: map[string]uint64{"etcd": 5e6}},
		{At: at(2000), Phase: "populate", Made: 110, Memory: map[string]uint64{"etcd": 6e6}},
		{At: at(3000), Phase: "floor, last", Made: 110, Changed: 7, Deleted: 20, Memory: map[string]uint64{"etcd": 6e6, "weir": 1.5e6}, Heap: 4e5},
	}
	var out bytes.Buffer
	if err := WriteCSV(&out, samples, []string{"weir", "etcd"}); err != nil {
		t.Fatal(err)
	}
	want := `seconds,phase,made,changed,deleted,weir,etcd,weir heap
0.0,populate,0.0,0.0,0.0,,5.0,
2.0,populate,50.0,0.0,0.0,,6.0,
3.0,"floor, last",0.0,7.0,20.0,1.5,6.0,0.4
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
