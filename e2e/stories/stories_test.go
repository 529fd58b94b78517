//go:build stories

package stories

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/e2e/node"
)

type told struct {
	name string
	tell func(*story)
	full bool // told in the full ring only
}

// stories are all of them, in the order in which they are told: later ones change how Weir is
// installed, the last uninstalls it.
var stories = []told{
	{"modes", (*story).modes, true},
	{"installed", (*story).installed, false},
	{"foreground", (*story).foregroundWaitsForContainers, true},
	{"orphan", (*story).orphanedPodsRunOn, true},
	{"waves", (*story).namespaceDrainsInWaves, false},
	{"undo", (*story).restored, true},
	{"cert-manager", (*story).certManager, true},
	{"upgrade", (*story).upgradeAndRollBack, false},
	{coldStart, (*story).coldStart, false},
	{"uninstall", (*story).uninstallWithHeldObjects, false},
}

func TestStories(t *testing.T) {
	all := slices.DeleteFunc(slices.Clone(stories), func(s told) bool { return s.full && !fullRing })
	if cluster.machine == nil {
		t.Logf("the story %s is for clusters whose node can be lost and replaced, as that of make e2e-node: there is no %s", coldStart, node.SocketVariable)
		all = slices.DeleteFunc(all, func(s told) bool { return s.name == coldStart })
	}
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) { one.tell(begin(t, one.name)) })
	}
}
