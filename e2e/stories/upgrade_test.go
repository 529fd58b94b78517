//go:build stories

package stories

import (
	"path/filepath"
)

// previous is a version of the chart that is older than the one under test.
const previous = "0.0.1"

// upgradeAndRollBack: from the chart of an earlier version to this one, back, and up again, while
// policies say Fail: no request is refused. There is no release yet, so the earlier version is this
// chart under another number.
func (s *story) upgradeAndRollBack() {
	dir := s.TempDir()
	s.helm("package", chart, "--version", previous, "--destination", dir)
	// Another format of the log, so that an upgrade replaces pods, and does not only change labels.
	s.helm(upgrade(filepath.Join(dir, "weir-"+previous+".tgz"), "log.format=text")...)
	release.extra = []string{"another version"}
	s.until("the earlier version is installed", s.said("weir-"+previous, "get", "deployment", "weir-webhook", "-n", weirNamespace,
		"-o", `jsonpath={.metadata.labels.helm\.sh/chart}`))
	s.keep("Fail")
	st := s.stream()
	st.flowing(50)
	s.weir()
	st.flowing(50)
	s.helm("rollback", "weir", "--wait", "--timeout", "3m")
	release.extra = []string{"another version"}
	s.until("the earlier version is back", s.said("weir-"+previous, "get", "deployment", "weir-webhook", "-n", weirNamespace,
		"-o", `jsonpath={.metadata.labels.helm\.sh/chart}`))
	st.flowing(50)
	s.weir()
	st.flowing(50)
	st.unharmed()
}
