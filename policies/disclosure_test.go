package policies

import (
	"strings"
	"testing"
)

// Names are told to who may list the kind where the object is, not where the deleted one is.
func TestNamesAreToldToWhoMayListThemThere(t *testing.T) {
	pods := Access{Verb: "list", Resource: "pods", Namespace: "shop"}
	there := Access{Verb: "list", Resource: "pods", Namespace: "team-a"}
	q := namespace(Facts{Content: func(string) (AlsoDeleted, bool) {
		return AlsoDeleted{Kinds: []KindCount{{Resource: "pods", Count: 2, Names: []string{"here", "team-a/there"}}}}, true
	}})
	set := Build(nil, sources(t, "f", strings.ReplaceAll(protects("p", "", "maxDependents: 0}"), "configmaps", "namespaces")), Options{})
	for says, may := range map[string]map[Access]Answer{
		"2 pods (here, …)":            {pods: true, there: false},
		"2 pods (team-a/there, …)":    {pods: false, there: true},
		"2 pods (DeletionPolicy":      {pods: false, there: false},
		"2 pods (here, team-a/there)": {pods: true, there: true},
	} {
		q.Answers = may
		if d := set.Decide(q); d.Allowed || !strings.Contains(d.Message, says) {
			t.Errorf("%v: %s\nwant %s", may, d.Message, says)
		}
	}
	q.Answers = nil
	if d := set.Decide(q); len(d.Discloses) != 2 || d.Discloses[0] != pods || d.Discloses[1] != there {
		t.Errorf("asks %v", d.Discloses)
	}

	// Of what a cascade would lose, a command would tell the name and the uid.
	l := &loss{by: set.policies[0], objects: []lost{{configMaps.GroupResource(), "team-a/x", "confirm x"}, {configMaps.GroupResource(), "y", "confirm y"}}}
	l.by.deletion.protection.Confirmation = "Required"
	told := howToDelete(l, AlsoDeleted{Kinds: []KindCount{{Resource: "configmaps", Count: 2, Names: []string{"y"}}}})
	if len(told) != 1 || strings.Contains(told[0], "confirm x") || !strings.Contains(told[0], "confirm y") {
		t.Errorf("told %q", told)
	}
}
