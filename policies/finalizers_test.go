package policies

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	weirs      = "weir.dev/propagation"
	foreground = "foregroundDeletion"
)

var jobs = schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}

// propagationOf is a set with one policy about Deployments, Jobs and Pods.
func propagationOf(t *testing.T, rest string) *Set {
	t.Helper()
	return Build(nil, sources(t, "f", "{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p}, spec: {match: {resources: [{apiGroups: [apps], resources: [deployments]}, {apiGroups: [batch], resources: [jobs]}, {apiGroups: [''], resources: [pods]}]}, "+rest+"}}"), Options{})
}

func storedAs(gvr schema.GroupVersionResource) Question {
	return Stored(schema.GroupVersionKind{}, gvr, map[string]any{"metadata": map[string]any{"name": "a", "namespace": "shop"}}, nil)
}

func TestWhatAnObjectIsToCarry(t *testing.T) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	for rest, want := range map[string][3]string{ // of Deployments, Jobs, Pods
		"propagation: {default: Foreground}":                                                                     {weirs, weirs + " " + foreground, ""},
		"propagation: {default: Orphan}":                                                                         {weirs, weirs, ""},
		"propagation: {default: Background}":                                                                     {"", weirs + " " + foreground, ""},
		"propagation: {allowed: [Foreground]}":                                                                   {"", "", ""},
		"propagation: {dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}":                      {weirs, weirs, ""},
		"propagation: {default: Background, dependents: [{apiGroups: [''], resources: [pods], action: Orphan}]}": {weirs, weirs + " " + foreground, ""},
		"protection: {maxDependents: 0}":                                                                         {"", "", ""},
	} {
		set := propagationOf(t, rest)
		for i, gvr := range []schema.GroupVersionResource{deployments, jobs, pods} {
			m, errs := set.FinalizersFor(storedAs(gvr))
			if got := strings.Join(m.Finalizers, " "); got != want[i] || (m.By == "p") != (want[i] != "") || len(errs) > 0 {
				t.Errorf("%s: %s carry %q by %q, want %q; %v", rest, gvr.Resource, got, m.By, want[i], errs)
			}
			// Where it can be that something is to be carried, it has to be looked for.
			if some, _ := set.AddsFinalizer(gvr.GroupResource()); some != (want[i] != "") {
				t.Errorf("%s: %s may get the finalizer: %t", rest, gvr.Resource, some)
			}
		}
	}
}

func TestWhatIsMissingOfAMark(t *testing.T) {
	both := Wanted{By: "p", Finalizers: []string{weirs, foreground}}
	for have, want := range map[string]string{
		"":                           weirs + " " + foreground,
		"a":                          weirs + " " + foreground,
		weirs:                        foreground,
		foreground:                   weirs,
		weirs + " " + foreground:     "",
		"orphan":                     weirs, // the API server does not accept both (RB 6.4)
		"orphan " + weirs:            "",
		"a " + weirs + " b orphan c": "",
	} {
		if got := strings.Join(both.Missing(strings.Fields(have)), " "); got != want {
			t.Errorf("%q misses %q, want %q", have, got, want)
		}
	}
	if strings.Join(both.Finalizers, " ") != weirs+" "+foreground {
		t.Error("the mark was written to")
	}
	if got := (Wanted{}).Missing(nil); len(got) > 0 {
		t.Errorf("no mark misses %v", got)
	}
}

func TestWhatWeirHasPut(t *testing.T) {
	for have, want := range map[string][2]string{ // of Deployments, of Jobs
		"":                       {"", ""},
		foreground:               {"", ""}, // a user's
		weirs:                    {weirs, weirs},
		weirs + " " + foreground: {weirs, weirs + " " + foreground},
		foreground + " " + weirs: {weirs, weirs + " " + foreground},
		"orphan " + weirs:        {weirs, weirs},
	} {
		for i, gvr := range []schema.GroupVersionResource{deployments, jobs} {
			if got := strings.Join(OwnFinalizers(gvr.GroupResource(), strings.Fields(have)), " "); got != want[i] {
				t.Errorf("of %q on %s weir has put %q, want %q", have, gvr.Resource, got, want[i])
			}
		}
	}
}

func TestSinceWhenAnObjectIsArmed(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, c := range map[string]struct {
		finalizer, at string
		since         time.Duration
		armed         bool
	}{
		"a while":                     {weirs, ArmedAt(now.Add(-20 * time.Second)), 20 * time.Second, true},
		"to the nanosecond":           {weirs, ArmedAt(now.Add(-1)), 1, true},
		"by a clock in another zone":  {weirs, "2026-01-02T04:04:05+01:00", 6, true},
		"by a clock that is ahead":    {weirs, ArmedAt(now.Add(10 * time.Second)), 0, true},
		"at a time to come":           {weirs, ArmedAt(now.Add(10*time.Second + 1)), 0, false},
		"at the end of time":          {weirs, "9999-12-31T23:59:59Z", 0, false},
		"at no time that can be read": {weirs, "yesterday", 0, false},
		"never":                       {weirs, "", 0, false},
		"not armed any more":          {"a", ArmedAt(now), 0, false},
	} {
		o := map[string]any{"metadata": map[string]any{"finalizers": []any{c.finalizer}, "annotations": map[string]any{v1beta1.ArmedAtAnnotation: c.at}}}
		if since, armed := ArmedSince(o, now); since != c.since || armed != c.armed {
			t.Errorf("%s: %s, %t, want %s, %t", name, since, armed, c.since, c.armed)
		}
	}
	if _, armed := ArmedSince(nil, now); armed {
		t.Error("nothing is armed")
	}
}

// Otherwise whoever may edit an object could have it held for as long as the time says.
func TestTimeThatCannotBeBelievedIsWrittenAgain(t *testing.T) {
	set := propagationOf(t, "propagation: {default: Foreground}")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for at, arm := range map[string]bool{"": false, ArmedAt(now): false, ArmedAt(now.Add(-time.Hour)): false, ArmedAt(now.Add(time.Second)): false,
		ArmedAt(now.Add(time.Hour)): true, "9999-12-31T23:59:59Z": true, "soon": true, "-": true} {
		q := Question{Operation: Delete, Resource: deployments, Namespace: "shop", Name: "a", Now: now, OldObject: map[string]any{"metadata": map[string]any{
			"name": "a", "finalizers": []any{weirs}, "annotations": map[string]any{v1beta1.ArmedAtAnnotation: at}}}}
		if d := set.Decide(q); d.Arm != arm || !d.Allowed || !d.Enforced {
			t.Errorf("%q: %+v, want arm %t", at, d, arm)
		}
	}
}

// A PUT by who knows nothing of the finalizer removes it, and the webhook puts it back with its time:
// that is no new one.
func TestFinalizerThatIsRemovedComesBackAsItWas(t *testing.T) {
	set := propagationOf(t, "propagation: {default: Foreground}")
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	before := ArmedAt(now.Add(-time.Hour))
	for name, c := range map[string]struct {
		gvr      schema.GroupVersionResource
		old, new string // finalizers
		at, said string // annotations
		want     string // finalizers, and the time; empty: nothing is patched
	}{
		"all are taken off":                 {deployments, weirs, "", before, "", weirs + " at " + before},
		"all of several":                    {deployments, "a " + weirs, "", before, "", weirs + " at " + before},
		"it alone, from the middle":         {deployments, "a " + weirs + " b", "a b", before, "", "a b " + weirs + " at " + before},
		"and others are put on":             {deployments, weirs, "b", before, "", "b " + weirs + " at " + before},
		"made with it, never armed":         {deployments, weirs, "", "", "", weirs + " at "},
		"the annotation stays":              {deployments, weirs, "", before, before, weirs + " at " + before},
		"the annotation is changed":         {deployments, weirs, "", before, "soon", weirs + " at " + before},
		"both of a Job's":                   {jobs, weirs + " " + foreground, "", before, "", weirs + " " + foreground + " at " + before},
		"one of a Job's":                    {jobs, foreground + " " + weirs, weirs, before, "", weirs + " " + foreground + " at " + before},
		"a finalizer that was not there":    {deployments, "a", "a", "", "", "a " + weirs + " at " + ArmedAt(now)},
		"a Job's that was half there":       {jobs, weirs, "", before, "", weirs + " " + foreground + " at " + ArmedAt(now)},
		"nothing is taken off":              {deployments, weirs, weirs, before, before, ""},
		"the annotation alone is changed":   {deployments, weirs, weirs, before, ArmedAt(now), weirs + " at " + before},
		"the annotation alone is removed":   {deployments, weirs, weirs, before, "", weirs + " at " + before},
		"a time where there was none":       {deployments, weirs, weirs, "", ArmedAt(now), weirs + " at "},
		"the same, and all are taken off":   {deployments, weirs, "", "", ArmedAt(now), weirs + " at "},
		"a finalizer of before, not wanted": {schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, weirs, "", before, "", ""},
	} {
		stored := func(finalizers, at string) map[string]any {
			m := map[string]any{"name": "a", "namespace": "shop"}
			if f := strings.Fields(finalizers); len(f) > 0 {
				m["finalizers"] = anyList(f)
			}
			if at != "" {
				m["annotations"] = map[string]any{v1beta1.ArmedAtAnnotation: at}
			}
			return map[string]any{"metadata": m}
		}
		d := set.Decide(Question{Operation: Update, Asked: WebhookAddFinalizer, Resource: c.gvr, Namespace: "shop", Name: "a", Now: now,
			OldObject: stored(c.old, c.at), Object: stored(c.new, c.said)})
		finalizers, at := strings.Fields(c.new), c.said
		for _, p := range d.Patch {
			switch p.Path {
			case "/metadata/finalizers":
				finalizers = strings.Fields(strings.Trim(fmt.Sprint(p.Value), "[]"))
			case "/metadata/finalizers/-":
				finalizers = append(finalizers, fmt.Sprint(p.Value))
			case "/metadata/annotations":
				at = fmt.Sprint(p.Value.(map[string]any)[v1beta1.ArmedAtAnnotation])
			case annotationPath(v1beta1.ArmedAtAnnotation):
				if at = ""; p.Op != "remove" {
					at = fmt.Sprint(p.Value)
				}
			default:
				t.Errorf("%s: patches %s", name, p.Path)
			}
		}
		got := ""
		if len(d.Patch) > 0 {
			got = strings.Join(finalizers, " ") + " at " + at
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// What cannot be judged may be wanted: it has to be looked for, and is not taken off.
// What others may write besides an object itself, and while it terminates (RB 6.35).
func TestFinalizerIsTakenOffByWeirAlone(t *testing.T) {
	set := Build(nil, sources(t, "f", `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: p},
  spec: {match: {resources: [{apiGroups: ["*"], resources: ["*"]}]}, propagation: {default: Foreground}}}`), Options{Self: []string{"weir"}})
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	for name, c := range map[string]struct {
		gvr               schema.GroupVersionResource
		user, subresource string
		terminates        bool
		old, new          string // finalizers
		want              string // the patch; empty: none
	}{
		"by the status":                  {deployments, "alice", "status", false, weirs, "", weirs},
		"a status adds none":             {deployments, "alice", "status", false, "a", "", ""},
		"by what writes no metadata":     {deployments, "alice", "scale", false, weirs, "", ""},
		"of an object that terminates":   {deployments, "alice", "", true, weirs, "", weirs},
		"with others, which go":          {deployments, "alice", "", true, "a " + weirs + " b", "b", "b " + weirs},
		"of one, by the status":          {deployments, "alice", "status", true, weirs, "", weirs},
		"others go":                      {deployments, "alice", "", true, "a " + weirs, weirs, ""},
		"one that carries none":          {deployments, "alice", "", true, "a", "", ""},
		"foreground is the collector's":  {jobs, "alice", "", true, weirs + " " + foreground, weirs, ""},
		"by weir":                        {deployments, "weir", "", true, weirs, "", ""},
		"and by weir before that":        {deployments, "weir", "", false, weirs, "", ""},
		"where no propagation can apply": {schema.GroupVersionResource{Version: "v1", Resource: "pods"}, "alice", "status", false, weirs, "", ""},
		"of any other kind":              {secrets, "alice", "", true, weirs, "", weirs},
	} {
		old, now := map[string]any{"name": "a", "finalizers": anyList(strings.Fields(c.old))}, map[string]any{"name": "a", "finalizers": anyList(strings.Fields(c.new))}
		if c.terminates {
			old["deletionTimestamp"], now["deletionTimestamp"] = "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"
		}
		d := set.Decide(Question{Operation: Update, Asked: WebhookAddFinalizer, Resource: c.gvr, Subresource: c.subresource, User: User{Name: c.user},
			Namespace: "shop", Name: "a", OldObject: map[string]any{"metadata": old}, Object: map[string]any{"metadata": now}})
		got := ""
		for _, p := range d.Patch {
			switch p.Path {
			case "/metadata/finalizers":
				got = strings.Trim(fmt.Sprint(p.Value), "[]")
			case "/metadata/finalizers/-":
				got = strings.Join(append(strings.Fields(c.new), fmt.Sprint(p.Value)), " ")
			}
		}
		if got != c.want || !d.Allowed || len(d.Warnings) > 0 != (c.terminates && got != "") {
			t.Errorf("%s: %q, allowed %t, warnings %q; want %q", name, got, d.Allowed, d.Warnings, c.want)
		}
		for _, w := range d.Warnings {
			if len(w) > 256 {
				t.Errorf("%d bytes of a warning are cut off by the API server: %s", len(w), w)
			}
		}
	}
}

func TestBrokenPoliciesMayAddTheFinalizer(t *testing.T) {
	set := propagationOf(t, "propagation: {default: Background}, priority: 9999999")
	if some, _ := set.AddsFinalizer(deployments.GroupResource()); !some {
		t.Error("nobody looks for what a broken policy may add the finalizer to")
	}
	if m, errs := set.FinalizersFor(storedAs(deployments)); m.By != "" || len(errs) != 1 {
		t.Errorf("%+v, %v; want an error", m, errs)
	}
}

func TestWhetherMoreThanMetadataIsNeeded(t *testing.T) {
	for rest, want := range map[string]bool{"": false, `, matchConditions: [{name: c, expression: "true"}]`: true} {
		text := strings.Replace(delpol("p", "propagation: {default: Orphan}"), "[deployments]}]", "[deployments]}]"+rest, 1)
		set := Build(nil, sources(t, "f", text), Options{})
		if some, full := set.AddsFinalizer(deployments.GroupResource()); !some || full != want {
			t.Errorf("with %q: some=%t, whole=%t, want %t", rest, some, full, want)
		}
		if some, full := set.AddsFinalizer(jobs.GroupResource()); some || full {
			t.Errorf("with %q: what no policy is about: some=%t, whole=%t", rest, some, full)
		}
	}
}

func TestWhichPoliciesAskForWhatIsKnownOfTheCluster(t *testing.T) {
	owners := func(spec string) string {
		return fmt.Sprintf("{apiVersion: weir.dev/v1beta1, kind: OwnerReferencePolicy, metadata: {name: o}, spec: {match: {resources: [{apiGroups: [''], resources: [pods]}]}, %s}}", spec)
	}
	const nothing, kinds, objects = "nothing", "kinds", "kinds and objects"
	for text, want := range map[string]string{
		"": nothing,
		delpol("p", "propagation: {default: Orphan}"):                                 nothing,
		delpol("p", "protection: {confirmation: Required}"):                           objects,
		delpol("p", "protection: {confirmation: Required, inCascades: Ignore}"):       nothing,
		delpol("p", "protection: {maxDependents: 0}"):                                 objects,
		delpol("p", "brake: {maxObjects: 0}"):                                         objects,
		delpol("p", "protection: {maxDependents: 9}, propagation: {default: Orphan}"): objects,
		owners("blockOwnerDeletion: Deny"):                                            nothing,
		owners("blockOwnerDeletion: Clear"):                                           nothing,
		owners("changes: RequirePermission"):                                          nothing,
		owners("blockOwnerDeletion: RequirePermission"):                               kinds,
		owners("rules: {manyControllers: Deny}"):                                      kinds,
		owners("rules: {namespacedOwner: Deny}"):                                      kinds,
		owners("rules: {unservedVersion: Audit, dangling: Ignore}"):                   kinds,
		owners("rules: {dangling: Warn}"):                                             objects,
		owners("rules: {mismatch: Deny}"):                                             objects,
		owners("rules: {otherNamespace: Audit}"):                                      objects,
		owners("rules: {cycle: Deny}"):                                                objects,
		owners("rules: {unservedVersion: Deny, cycle: Deny}"):                         objects,
		owners("rules: {cycle: Audit}, blockOwnerDeletion: RequirePermission"):        objects,
		owners("rules: {dangling: Warn}, failurePolicy: Fail"):                        objects,
		owners("rules: {dangling: Warn}, validationActions: [Warn]"):                  objects,
		owners("blockOwnerDeletion: RequirePermission, validationActions: [Audit]"):   kinds,
		"{apiVersion: weir.dev/v1beta1, kind: DrainPolicy, metadata: {name: d}, spec: {waves: [{name: x, resources: [{apiGroups: [''], resources: [pods]}]}]}}": nothing,
		owners("blockOwnerDeletion: RequirePermission") + "\n---\n" + delpol("p", "protection: {maxDependents: 0}"):                                             objects,
		owners("blockOwnerDeletion: RequirePermission") + "\n---\n" + delpol("p", "propagation: {default: Orphan}"):                                             kinds,
	} {
		got, s := nothing, Build(nil, sources(t, "f", text), Options{})
		switch {
		case s.NeedsGraph() && s.NeedsKinds():
			got = objects
		case s.NeedsGraph():
			got = "objects without kinds"
		case s.NeedsKinds():
			got = kinds
		}
		if got != want {
			t.Errorf("%s\nasks for %s, want %s", text, got, want)
		}
	}
}

// The namespaces that back-fill lists are those of policies that add the finalizer, if each of
// The labels that back-fill lists by are those of policies that add the finalizer; others only have
// it removed.
func TestWhatALookSelects(t *testing.T) {
	selecting := func(name, labels, spec string) string {
		return strings.Replace(delpol(name, spec), "[deployments]}]", "[deployments]}], objectSelector: {matchLabels: {"+labels+"}}", 1)
	}
	const orphan = "propagation: {default: Orphan}"
	for name, c := range map[string]struct {
		policies []string
		selector string
		some     bool
	}{
		"none":                {nil, "", false},
		"one":                 {[]string{selecting("a", "keep: x", orphan)}, "keep in (x)", true},
		"two":                 {[]string{selecting("a", "keep: x", orphan), selecting("b", "keep: z", orphan)}, "keep in (x,z)", true},
		"one selects all":     {[]string{selecting("a", "keep: x", orphan), delpol("b", orphan)}, "", true},
		"one does not add it": {[]string{selecting("a", "keep: x", orphan), delpol("b", "protection: {confirmation: Required}")}, "keep in (x)", true},
		"one removes it":      {[]string{selecting("a", "keep: x", orphan), delpol("b", "propagation: {default: Background}, priority: 9")}, "keep in (x)", true},
		"one is broken":       {[]string{selecting("a", "keep: x", orphan), delpol("b", orphan+", priority: 9999999")}, "", true},
		"one is on trial":     {[]string{selecting("a", "keep: x", orphan), delpol("b", orphan+", validationActions: [Warn]")}, "keep in (x)", true},
	} {
		set := Build(nil, sources(t, "f", strings.Join(c.policies, "\n---\n")), Options{})
		if l := set.LookAt(deployments.GroupResource()); l.Selector != c.selector || l.Asks != c.some {
			t.Errorf("%s: %q, %t; want %q, %t", name, l.Selector, l.Asks, c.selector, c.some)
		}
		if l := set.LookAt(jobs.GroupResource()); l.Selector != "" || l.Asks {
			t.Errorf("%s: what no policy is about: %q, %t", name, l.Selector, l.Asks)
		}
	}
}
