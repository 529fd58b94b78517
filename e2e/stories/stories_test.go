package stories

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/e2e/node"
)

type told struct {
	name string
	tell func(*story)
}

// stories are all of them, in the order in which they are told: later ones change how Weir is installed, the last uninstalls it.
var stories = []told{
	{"shadow", (*story).shadow},
	{"modes", (*story).modes},
	{"installed", (*story).installed},
	{"foreground", (*story).foregroundWaitsForContainers},
	{"orphan", (*story).orphanedPodsRunOn},
	{"protection", (*story).protection},
	{"block-owner-deletion", (*story).blockOwnerDeletion},
	{"waves", (*story).namespaceDrainsInWaves},
	{"rolling-restart", (*story).rollingRestart},
	{"webhook-down-ignore", (*story).webhookDownUnderIgnore},
	{"webhook-down-fail", (*story).webhookDownUnderFail},
	{"rotation", (*story).certificateRotation},
	{"cert-manager", (*story).certManager},
	{"upgrade", (*story).upgradeAndRollBack},
	{coldStart, (*story).coldStart},
	{"uninstall", (*story).uninstallWithHeldObjects},
}

func TestStories(t *testing.T) {
	all := stories
	if cluster.machine == nil {
		t.Logf("the story %s is for clusters whose node can be lost and replaced, as that of make e2e-node: there is no %s", coldStart, node.SocketVariable)
		all = slices.DeleteFunc(slices.Clone(all), func(s told) bool { return s.name == coldStart })
	}
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) { one.tell(begin(t, one.name)) })
	}
}
