package version

import (
	"runtime/debug"
	"testing"
)

func TestVersionIsOfTheReleaseOrTheModule(t *testing.T) {
	module := func(v string) *debug.BuildInfo { return &debug.BuildInfo{Main: debug.Module{Version: v}} }
	for name, c := range map[string]struct {
		release string
		info    *debug.BuildInfo
		want    string
	}{
		"a release":                   {"v1.2.3", module("(devel)"), "v1.2.3"},
		"go install of a version":     {"", module("v1.2.3"), "v1.2.3"},
		"go build":                    {"", module("(devel)"), "dev"},
		"a test":                      {"", module(""), "dev"},
		"a binary without build info": {"", nil, "dev"},
	} {
		if got := of(c.release, c.info); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
