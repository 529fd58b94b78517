package finalizers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// many is a server with more ConfigMaps than fit on two pages, in two namespaces.
func many(t *testing.T) (*apitest.Server, *Lister) {
	t.Helper()
	api := apitest.New()
	for i := range 2*page + 10 {
		api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%04d, namespace: ns%d}, data: {x: y}}", i, i%2))
	}
	l, err := NewLister(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	return api, l
}

func TestEveryObjectIsSeenPageByPage(t *testing.T) {
	_, l := many(t)
	for _, full := range []bool{false, true} {
		for namespace, want := range map[string]int{"": 2*page + 10, "ns1": page + 5, "none": 0} {
			seen := map[string]bool{}
			err := l.Each(t.Context(), configMaps, namespace, "", full, func(object map[string]any, m *metav1.ObjectMeta) error {
				seen[m.Namespace+"/"+m.Name] = true
				if _, has := object["data"]; has != full {
					t.Errorf("whole=%t: data is there: %t", full, has)
				}
				if got := MetaOf(object); got.Name != m.Name || got.UID != m.UID || got.ResourceVersion != m.ResourceVersion {
					t.Errorf("the object is %v, its metadata %v", got, m)
				}
				return nil
			})
			if err != nil || len(seen) != want {
				t.Errorf("whole=%t, namespace %q: saw %d, want %d; %v", full, namespace, len(seen), want, err)
			}
		}
	}
	seen := 0
	if err := l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { seen++; return nil }); err != nil || seen != 2*page+10 {
		t.Errorf("saw %d, %v", seen, err)
	}
}

// TestOnePageIsReadAhead, and no more: whoever uses one takes his time.
func TestOnePageIsReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api, l := many(t)
		var pages atomic.Int32
		api.Intercept(func(apitest.Request) *apitest.Reply { pages.Add(1); return nil })
		var read []int32
		seen := 0
		if err := l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error {
			if seen++; seen%page == 1 {
				synctest.Wait()
				read = append(read, pages.Load())
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]int32{2, 3, 3}, read); diff != "" {
			t.Errorf("pages read when the first of each is used (-want +got):\n%s", diff)
		}
		err := errors.New("enough")
		if got := l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { return err }); !errors.Is(got, err) {
			t.Errorf("error %v", got)
		}
	})
}

// TestEachRequestIsMadeWhenItIsSent: each page of a list by itself, and what is not sent is an
// error.
func TestEachRequestIsMadeWhenItIsSent(t *testing.T) {
	api, l := many(t)
	var asked atomic.Int32
	api.Intercept(func(apitest.Request) *apitest.Reply { asked.Add(1); return nil })
	later := errors.New("later")
	list, get := []string{"list configmaps"}, []string{"get configmaps"}
	want := slices.Concat(slices.Repeat(list, 3), get, slices.Repeat(list, (2*page+10+fullPage-1)/fullPage), get) // of metadata, and of whole objects
	var sent []string
	through := l.Through(func(ctx context.Context, verb string, kind schema.GroupResource, request func(context.Context) error) error {
		sent = append(sent, verb+" "+kind.String())
		if len(sent) > len(want) {
			return later
		}
		return request(ctx)
	})
	seen := 0
	count := func(map[string]any, *metav1.ObjectMeta) error { seen++; return nil }
	for _, whole := range []bool{false, true} {
		if err := through.Each(t.Context(), configMaps, "", "", whole, count); err != nil {
			t.Fatal(err)
		}
		if _, _, err := through.Get(t.Context(), configMaps, "ns0", "c0000", whole); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, sent); diff != "" || seen != 2*(2*page+10) || int(asked.Load()) != len(want) {
		t.Errorf("%d objects by %d requests (-want +got):\n%s", seen, asked.Load(), diff)
	}
	if err := through.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { return nil }); !errors.Is(err, later) {
		t.Errorf("error %v", err)
	}
	if err := through.Each(t.Context(), configMaps, "", "", true, count); !errors.Is(err, later) || int(asked.Load()) != len(want) {
		t.Errorf("error %v after %d requests", err, asked.Load())
	}
}

// Where the API does not say where a list that grew too old goes on, no object comes twice.
func TestListThatIsTooOldIsAnError(t *testing.T) {
	for page := range int32(2) {
		api, l := many(t)
		var pages atomic.Int32
		api.Intercept(func(apitest.Request) *apitest.Reply {
			if pages.Add(1) <= page {
				return nil
			}
			return apitest.Refuse(410, "Expired", "too old")
		})
		err := l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { return nil })
		if !apierrors.IsResourceExpired(err) || err.Error() != "list configmaps: too old" {
			t.Errorf("page %d: error %v", page+1, err)
		}
	}
}

func TestListEndsWithTheFirstError(t *testing.T) {
	_, l := many(t)
	stop := errors.New("enough")
	for name, each := range map[string]func(func() error) error{
		"whole": func(f func() error) error {
			return l.Each(t.Context(), configMaps, "", "", true, func(map[string]any, *metav1.ObjectMeta) error { return f() })
		},
		"metadata": func(f func() error) error {
			return l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { return f() })
		},
	} {
		seen := 0
		err := each(func() error {
			if seen++; seen == 3 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || seen != 3 {
			t.Errorf("%s: saw %d, %v", name, seen, err)
		}
	}
}

func TestGetReadsTheWholeOrTheMetadata(t *testing.T) {
	_, l := many(t)
	for _, full := range []bool{false, true} {
		object, m, err := l.Get(t.Context(), configMaps, "ns0", "c0000", full)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := object["data"]; has != full || m.UID != "uid-c0000" {
			t.Errorf("whole=%t: %v, uid %s", full, object, m.UID)
		}
		if _, _, err := l.Get(t.Context(), configMaps, "ns0", "none", full); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "none") {
			t.Errorf("whole=%t: one that is not there: %v", full, err)
		}
	}
}

// TestAListWithoutAnEndIsAnError: an API gives another token with each page, and nothing with it,
// or the same object over and over.
func TestAListWithoutAnEndIsAnError(t *testing.T) {
	for name, items := range map[string][]any{
		"nothing":      {},
		"the same one": {map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata", "metadata": map[string]any{"name": "c", "namespace": "ns1", "uid": "u"}}},
	} {
		api, l := many(t)
		var pages atomic.Int32
		api.Intercept(func(r apitest.Request) *apitest.Reply {
			n := pages.Add(1)
			if n > 100 {
				return apitest.Refuse(403, "Forbidden", "that is enough")
			}
			return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": map[string]any{"continue": fmt.Sprint(n)}, "items": items}}
		})
		err := l.Each(t.Context(), configMaps, "", "", false, func(map[string]any, *metav1.ObjectMeta) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "bring nothing new") {
			t.Errorf("%s: %v, after %d pages", name, err, pages.Load())
		}
	}
}
