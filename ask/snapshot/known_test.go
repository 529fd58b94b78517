package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/controller/kinds"
)

// holding is a Follower of ConfigMaps and Secrets that nothing tells of but the test; those have
// been listed, and these not.
func holding(objects ...*metav1.PartialObjectMetadata) (f *Follower, maps, secrets *followed) {
	f = newFollower(nil, &Reader{}, "")
	kind := func(resource, of string) *followed {
		k := &followed{follower: f, kind: graph.Resource{Resource: resource, Kind: of, Version: "v1", Versions: []string{"v1"}, Namespaced: true, Collected: true}, stop: func() {},
			objects: map[string]map[types.UID]*metav1.PartialObjectMetadata{}}
		f.kinds[k.kind.GroupResource()] = k
		f.all = append(f.all, k.kind)
		return k
	}
	maps, secrets = kind("configmaps", "ConfigMap"), kind("secrets", "Secret")
	var list []any
	for _, o := range objects {
		list = append(list, o)
	}
	_ = maps.Replace(list, "5") // never fails
	return f, maps, secrets
}

// TestWhatAnAnswerSaysOfAKind: of the end of a request nothing, of a version that is too old
// nothing either. What has not changed is not told again.
func TestWhatAnAnswerSaysOfAKind(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		problem string
		denied  bool
	}{
		"all is well":               {nil, "", false},
		"it was given up":           {fmt.Errorf("list: %w", context.Canceled), "", false},
		"the connection was closed": {fmt.Errorf("watch: %w", io.EOF), "", false},
		"the version is too old":    {apierrors.NewResourceExpired("too old"), "", false},
		"it is gone":                {&apierrors.StatusError{ErrStatus: metav1.Status{Code: 410, Reason: metav1.StatusReasonGone}}, "", false},
		"it may not be listed":      {forbidden, "configmaps is forbidden: you may not", true},
		"it breaks":                 {apierrors.NewInternalError(errors.New("etcd")), "Internal error occurred: etcd", false},
		"no process is there":       {errors.New("connection\nrefused"), "connection refused", false},
	} {
		t.Run(name, func(t *testing.T) {
			f, maps, _ := holding()
			before := f.version
			for range 2 {
				maps.answered(c.err)
			}
			if maps.problem != c.problem || maps.denied != c.denied || (f.version-before == 1) != (c.problem != "") || f.version-before > 1 {
				t.Errorf("%q, denied %t, %d changes", maps.problem, maps.denied, f.version-before)
			}
			maps.answered(nil)
			if maps.problem != "" || maps.denied {
				t.Errorf("when all is well again: %q, denied %t", maps.problem, maps.denied)
			}
		})
	}
}

func TestHealthSaysWhetherWhatIsToldIsThere(t *testing.T) {
	for name, c := range map[string]struct {
		when func(f *Follower, maps, secrets *followed)
		want Health
	}{
		"a list has not come yet":     {func(*Follower, *followed, *followed) {}, Health{Waiting: 1}},
		"all is there":                {func(_ *Follower, _, s *followed) { _ = s.Replace(nil, "5") }, Health{}},
		"a kind may not be listed":    {func(_ *Follower, _, s *followed) { s.answered(forbidden) }, Health{Denied: 1}},
		"a kind that was there hangs": {func(_ *Follower, m, s *followed) { m.answered(errors.New("timeout")); _ = s.Replace(nil, "5") }, Health{Behind: map[string]string{"configmaps": "timeout"}}},
		"no kind that may be listed answers": {func(_ *Follower, m, s *followed) { m.answered(errors.New("timeout")); s.answered(forbidden) },
			Health{Denied: 1, Behind: map[string]string{"configmaps": "timeout"}, Lost: "no kind can be followed"}},
		"none may be listed": {func(_ *Follower, m, s *followed) { m.answered(forbidden); s.answered(forbidden) }, Health{Denied: 2}},
		"a group does not tell its kinds": {func(f *Follower, _, s *followed) {
			f.unheard = map[string]string{"x.io/v1": "503"}
			_ = s.Replace(nil, "5")
		}, Health{Behind: map[string]string{"all of x.io/v1": "503"}}},
		"the API server does not tell any": {func(f *Follower, _, _ *followed) { f.lost = "refused" }, Health{Lost: "refused", Waiting: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			f, maps, secrets := holding()
			c.when(f, maps, secrets)
			if c.want.Behind == nil {
				c.want.Behind = map[string]string{}
			}
			if diff := cmp.Diff(c.want, f.Health()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFindSaysWhyItFindsNothing: that something is not there is only said of a kind that was
// listed.
func TestFindSaysWhyItFindsNothing(t *testing.T) {
	f, maps, secrets := holding(object("configmap", "x", "boss"))
	for name, c := range map[string]struct {
		kind, namespace, name string
		is                    error
		want                  string
	}{
		"a kind that is not served": {"widgets.x.io", "x", "boss", ErrNotServed, `the cluster serves no kind "widgets.x.io"`},
		"nothing of that name":      {"configmaps", "x", "bos", ErrGone, `there is no configmaps "bos"`},
		"in another namespace":      {"configmaps", "y", "boss", ErrGone, `there is no configmaps "boss"`},
		"not listed yet":            {"secrets", "x", "boss", nil, "not known yet: secrets are being listed"},
	} {
		_, uid, err := f.Find(c.kind, c.namespace, c.name)
		if uid != "" || err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) || c.is == nil && (errors.Is(err, ErrGone) || errors.Is(err, ErrNotServed)) {
			t.Errorf("%s: %q, %v", name, uid, err)
		}
	}
	secrets.answered(forbidden)
	if _, _, err := f.Find("secrets", "x", "boss"); err == nil || errors.Is(err, ErrGone) || !strings.Contains(err.Error(), "secrets cannot be listed: ") {
		t.Errorf("may not be listed: %v", err)
	}
	maps.answered(errors.New("timeout"))
	if gvr, uid, err := f.Find("configmaps", "x", "boss"); uid != "boss" || gvr != configMaps || err != nil {
		t.Errorf("what is known of a kind that hangs: %v %q, %v", gvr, uid, err)
	}
}

// TestFindKnowsWhoHasANameNow: also after another had it.
func TestFindKnowsWhoHasANameNow(t *testing.T) {
	f, maps, _ := holding(object("configmap", "x", "boss"))
	find := func() types.UID {
		_, uid, err := f.Find("configmaps", "x", "boss")
		if err != nil && !errors.Is(err, ErrGone) {
			t.Fatal(err)
		}
		return uid
	}
	second := object("configmap", "x", "boss")
	second.UID = "second"
	for _, step := range []struct {
		does func()
		want types.UID
	}{
		{func() {}, "boss"}, {func() {}, "boss"}, {func() { _ = maps.Delete(object("configmap", "x", "boss")) }, ""}, {func() { _ = maps.Add(second) }, "second"}, {func() {}, "second"},
		{func() { _ = maps.Replace([]any{object("configmap", "x", "boss")}, "9") }, "boss"},
	} {
		if step.does(); find() != step.want {
			t.Errorf("found %q, want %q", find(), step.want)
		}
	}
}

// TestSearchHasTheBestMatchFirst: short names, and then by the alphabet, as many as are wanted; a
// uid finds its object.
func TestSearchHasTheBestMatchFirst(t *testing.T) {
	f, _, secrets := holding(object("configmap", "y", "web"), object("configmap", "x", "web"), object("configmap", "x", "web-1"), object("configmap", "x", "a-web"), object("configmap", "x", "other"))
	same := object("secret", "x", "web")
	same.UID = "key"
	_ = secrets.Add(same)
	_ = secrets.Add(object("secret", "x", "long-web-name"))
	for _, c := range []struct {
		text  string
		most  int
		total int
		want  string
	}{
		{"web", 10, 6, "configmaps x/web, configmaps y/web, secrets x/web, configmaps x/a-web, configmaps x/web-1, secrets x/long-web-name"},
		{"web", 2, 6, "configmaps x/web, configmaps y/web"},
		{"web", 0, 6, ""},
		{"key", 10, 1, "secrets x/web"},
		{"nothing", 10, 0, ""},
	} {
		found, total := f.Search(c.text, c.most)
		var got []string
		for _, o := range found {
			got = append(got, fmt.Sprintf("%s %s/%s", o.Kind, o.Namespace, o.Name))
		}
		if strings.Join(got, ", ") != c.want || total != c.total {
			t.Errorf("%s, %d at most: %q of %d, want %q of %d", c.text, c.most, got, total, c.want, c.total)
		}
	}
}

// TestSearchKeepsWhatIsWanted, however many match, and whatever the order in which they are met.
func TestSearchKeepsWhatIsWanted(t *testing.T) {
	const objects, most = 5000, 50
	var all []*metav1.PartialObjectMetadata
	for i := range objects {
		all = append(all, object("configmap", fmt.Sprint("n", i%7), fmt.Sprint("web-", i)))
	}
	f, _, _ := holding(all...)
	found, total := f.Search("web", most)
	if total != objects || len(found) != most || cap(found) > 2*most {
		t.Fatalf("%d of %d, and room for %d", len(found), total, cap(found))
	}
	for i, o := range found {
		want := fmt.Sprint("web-", i) // ten of one digit, and then those of two
		if o.Name != want {
			t.Errorf("number %d is %s, want %s", i, o.Name, want)
		}
	}
}

// TestStateCountsWhatIsThere: by kind and by namespace, with those in which nothing is, and what is
// being deleted.
func TestStateCountsWhatIsThere(t *testing.T) {
	going := object("configmap", "x", "going")
	going.DeletionTimestamp = new(metav1.Now())
	f, _, secrets := holding(object("configmap", "x", "boss"), going, object("configmap", "y", "far"))
	namespaces := &followed{follower: f, kind: graph.Resource{Resource: "namespaces", Kind: "Namespace", Version: "v1"}, objects: map[string]map[types.UID]*metav1.PartialObjectMetadata{}}
	f.kinds[kinds.Namespaces] = namespaces
	_ = namespaces.Replace([]any{object("namespace", "", "x"), object("namespace", "", "empty")}, "5")
	secrets.answered(forbidden)
	f.unheard, f.lost = map[string]string{"x.io/v1": "503", "a.io/v1": "503"}, "refused"
	want := State{Version: f.version, Objects: 5, Lost: "refused", Unheard: []string{"a.io/v1", "x.io/v1"},
		Kinds:      []KindState{{Kind: "configmaps", Objects: 3, Deleting: 1}, {Kind: "namespaces", Objects: 2}, {Kind: "secrets", Problem: ReasonOf(forbidden), Denied: true}},
		Namespaces: []NamespaceState{{Name: "", Objects: 2}, {Name: "empty"}, {Name: "x", Objects: 2, Deleting: 1}, {Name: "y", Objects: 1}}}
	if diff := cmp.Diff(want, f.State()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestEventsOfAWatchAreTakenAsTheyCome: twice, for what never was, of another type, and after the
// kind is followed no more.
func TestEventsOfAWatchAreTakenAsTheyCome(t *testing.T) {
	with := func(change func(*metav1.PartialObjectMetadata)) *metav1.PartialObjectMetadata {
		o := object("configmap", "x", "boss")
		change(o)
		return o
	}
	fields := []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	for name, c := range map[string]struct {
		does    func(f *Follower, k *followed)
		objects int
		changes int64
		fields  int
	}{
		"the same again": {func(_ *Follower, k *followed) { _ = k.Update(object("configmap", "x", "boss")) }, 1, 0, 0},
		"a new version": {func(_ *Follower, k *followed) {
			_ = k.Update(with(func(o *metav1.PartialObjectMetadata) { o.ResourceVersion = "9" }))
		}, 1, 0, 0},
		"another label": {func(_ *Follower, k *followed) {
			_ = k.Update(with(func(o *metav1.PartialObjectMetadata) { o.Labels = map[string]string{"a": "b"} }))
		}, 1, 1, 0},
		"who wrote it": {func(_ *Follower, k *followed) {
			_ = k.Update(with(func(o *metav1.PartialObjectMetadata) { o.ManagedFields = fields }))
		}, 1, 0, 0},
		"it is held": {func(_ *Follower, k *followed) {
			_ = k.Update(with(func(o *metav1.PartialObjectMetadata) {
				o.ManagedFields, o.Finalizers = fields, []string{"example.com/hold"}
			}))
		}, 1, 1, 1},
		"it goes": {func(_ *Follower, k *followed) { _ = k.Delete(object("configmap", "x", "boss")) }, 0, 1, 0},
		"it goes twice": {func(_ *Follower, k *followed) {
			_ = k.Delete(object("configmap", "x", "boss"))
			_ = k.Delete(object("configmap", "x", "boss"))
		}, 0, 2, 0},
		"what never was goes":    {func(_ *Follower, k *followed) { _ = k.Delete(object("configmap", "z", "never")) }, 1, 1, 0},
		"another type":           {func(_ *Follower, k *followed) { _ = k.Update(&metav1.Status{}); _ = k.Delete(&metav1.Status{}) }, 1, 0, 0},
		"a list of another type": {func(_ *Follower, k *followed) { _ = k.Replace([]any{&metav1.Status{}}, "9") }, 0, 1, 0},
		"a bookmark":             {func(_ *Follower, k *followed) { k.UpdateResourceVersion("9"); _ = k.Resync() }, 1, 0, 0},
		"it is followed no more": {func(f *Follower, k *followed) {
			delete(f.kinds, configMaps.GroupResource())
			_ = k.Update(object("configmap", "x", "late"))
			_ = k.Delete(object("configmap", "x", "late"))
		}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f, maps, _ := holding(object("configmap", "x", "boss"))
			before, changed := f.Changed()
			c.does(f, maps)
			n, written := 0, 0
			for _, in := range maps.objects {
				n += len(in)
				for _, o := range in {
					written += len(o.ManagedFields)
				}
			}
			after, _ := f.Changed()
			if n != c.objects || after-before != c.changes || written != c.fields {
				t.Errorf("%d objects, %d changes, %d entries of managedFields; want %d, %d, %d", n, after-before, written, c.objects, c.changes, c.fields)
			}
			select {
			case <-changed:
				if c.changes == 0 {
					t.Error("it is told that something has changed")
				}
			default:
				if c.changes > 0 {
					t.Error("nothing is told of it")
				}
			}
			if len(maps.objects["x"]) == 0 && maps.objects["x"] != nil && name != "a list of another type" {
				t.Error("an empty namespace is remembered")
			}
		})
	}
}

// TestWhatIsNotKnownIsSaid: of a kind that is being listed, or hangs, and of a cluster of which
// nothing is known there is none.
func TestWhatIsNotKnownIsSaid(t *testing.T) {
	f, maps, _ := holding(object("configmap", "x", "boss"))
	world := func() *insight.World {
		w, err := f.World("")
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	if diff := cmp.Diff([]string{"secrets: its first list has not come yet (forbidden: false)"}, unread(world())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	maps.answered(errors.New("timeout"))
	w := world()
	if diff := cmp.Diff([]string{"configmaps: timeout (forbidden: false)", "secrets: its first list has not come yet (forbidden: false)"}, unread(w)); diff != "" || w.Meta("boss") != nil {
		t.Errorf("what was known of it is told: %t (-want +got):\n%s", w.Meta("boss") != nil, diff)
	}
	lost := newFollower(nil, &Reader{}, "")
	if w, err := lost.World(""); err != nil || len(w.Unread()) != 0 {
		t.Errorf("of a cluster without kinds: %v", err)
	}
	lost = newFollower(nil, &Reader{}, "")
	lost.lost = "connection refused"
	if w, err := lost.World(""); w != nil || err == nil || err.Error() != "connection refused" {
		t.Errorf("of a cluster that never answered: %v, %v", w, err)
	}
}
