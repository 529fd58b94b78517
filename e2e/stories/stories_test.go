package stories

import "testing"

// The stories, in the order in which they are told: later ones change how Weir is installed, the last uninstalls it.
func TestStories(t *testing.T) {
	for _, one := range []struct {
		name string
		tell func(*story)
	}{
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
		{"uninstall", (*story).uninstallWithHeldObjects},
	} {
		t.Run(one.name, func(t *testing.T) { one.tell(begin(t, one.name)) })
	}
}
