//go:build full

package load

import (
	"path/filepath"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
)

// TestLevelsAreTheChartsForTheUserThatIsMeasured: what Helm renders of the same template is tested in charts/weir/tests.
func TestLevelsAreTheChartsForTheUserThatIsMeasured(t *testing.T) {
	levels, schemas, err := renderLevels(filepath.Join("..", "..", "charts", "weir"))
	if err != nil {
		t.Fatal(err)
	}
	if len(levels) != 1 || levels[0].Name != "weir" || levels[0].Spec.Limited == nil || *levels[0].Spec.Limited.NominalConcurrencyShares < 1 {
		t.Errorf("priority levels %+v", levels)
	}
	of := map[string]string{}
	for _, s := range schemas {
		of[s.Name] = s.Spec.PriorityLevelConfiguration.Name
		want := flowcontrolv1.ServiceAccountSubject{Namespace: "weir-system", Name: "weir"}
		if subject := s.Spec.Rules[0].Subjects[0]; subject.ServiceAccount == nil || *subject.ServiceAccount != want {
			t.Errorf("flow schema %s is about %+v, want %+v", s.Name, subject, want)
		}
	}
	if len(of) != 2 || of["weir"] != "weir" || of["weir-lease"] != "leader-election" {
		t.Errorf("flow schemas and their levels: %v", of)
	}
}
