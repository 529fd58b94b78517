package follow

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// A list shows what was, and nothing of what comes: until there is a watch, the kind is not
// followed.
func TestListWithoutAWatchIsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		hold := make(chan struct{})
		answer := sync.OnceFunc(func() { close(hold) })
		defer answer()
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/configmaps") && strings.Contains(r.Query, "watch=true") {
				<-hold
			}
			return nil
		})
		e.start()
		e.untilState(5*time.Second, "configmaps", graph.Synced)
		e.configMap("late", "")
		e.until(unwatchedFor+time.Second, "ConfigMaps are behind", func() bool { return e.behind("configmaps") != "" })
		if why := e.behind("widgets.example.com"); why != "" {
			t.Errorf("widgets are watched, and behind: %s", why)
		}
		answer()
		e.until(2*mostRetry+shortWatch, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
		if n := e.kind("configmaps").Objects; n != 1 {
			t.Errorf("%d objects, want the one that came meanwhile", n)
		}
	})
}

// scripted is a kind on an API server that does what a test says.
type scripted struct {
	metadata.Getter
	list  func(metav1.ListOptions) (string, error) // the resourceVersion of an empty list
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (s *scripted) Resource(schema.GroupVersionResource) metadata.Getter { return s }

func (s *scripted) Namespace(string) metadata.ResourceInterface { return s }

func (s *scripted) List(_ context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	version, err := s.list(o)
	if err != nil {
		return nil, err
	}
	return &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version}}, nil
}

func (s *scripted) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return s.watch(ctx, o)
}

// behind is why ConfigMaps are, in a store.
func behind(s *Store) string {
	for _, k := range s.Stats().Kinds {
		if k.GroupResource() == fixture.ConfigMaps && k.State == graph.Behind {
			return k.Reason
		}
	}
	return ""
}

func written(version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "o" + version, UID: fixture.UIDOf("o" + version), ResourceVersion: version}}
}

// client-go tries a watch again by itself that was answered 429 with a time to come again, and one
// that is answered late is no other. What was read before it, and has not come yet, is waited for
// all the same: the watch has a way to go from where the last one ended.
func TestWatchThatBeginsLateHasAsFarToComeAsIsThere(t *testing.T) {
	for name, c := range map[string]struct{ broke, putOff bool }{
		"the last one broke": {broke: true}, "it broke, and the next is put off": {broke: true, putOff: true},
		"the last one ended": {}, "it ended, and the next is put off": {putOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var watches []*watch.FakeWatcher
				now, lasts := "100", time.Duration(0)
				api := &scripted{list: func(metav1.ListOptions) (string, error) { return now, nil }}
				api.watch = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
					if len(watches) > 0 {
						<-time.After(unwatchedFor + time.Second)
						if c.putOff {
							ctx.Value(witnessKey{}).(func(error))(errors.New("429"))
						}
					}
					lasts = time.Duration(*o.TimeoutSeconds) * time.Second
					watches = append(watches, watch.NewFakeWithChanSize(10, false))
					return watches[len(watches)-1], nil
				}
				s := followed(t, api)
				<-time.After(5 * time.Second)
				synctest.Wait()
				now = "200"
				watches[0].Add(written("110"))
				if !c.broke {
					<-time.After(lasts)
				}
				watches[0].Stop()
				<-time.After(unwatchedFor + 2*time.Second)
				synctest.Wait()
				if len(watches) != 2 || behind(s) == "" {
					t.Fatalf("%d watches, behind: %q", len(watches), behind(s))
				}
				watches[1].Add(written("150"))
				synctest.Wait()
				if behind(s) == "" {
					t.Error("ConfigMaps are level, at 150, and were at 200 before the watch began")
				}
				watches[1].Add(written("200"))
				synctest.Wait()
				if why := behind(s); why != "" {
					t.Errorf("ConfigMaps have come to 200, and are behind: %s", why)
				}
			})
		})
	}
}

// followed is a store into which ConfigMaps are followed until the test ends.
func followed(t *testing.T, api *scripted) *Store {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := NewStore()
	s.Apply(graph.Serving{Resources: fixture.TwoKinds[:1]})
	w := NewWatcher(nil, api, s, nil, logr.Discard(), prometheus.NewRegistry())
	f := newFollower(&Feed{Kind: fixture.ConfigMaps, Store: s}, fixture.ConfigMaps.WithVersion("v1"), api, w.History, logr.Discard())
	done := make(chan struct{})
	go func() {
		defer close(done)
		f.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return s
}

// An API server that starts answers watches with 429, and lists with what is in the storage.
// Nothing of the watch is mute, because there was none: whoever listed instead would ask for all
// that there is, of all kinds, at the worst time.
func TestWatchThatIsRefusedIsNotListedInstead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newWatching(t)
		e.whole()
		lists := e.listsOf("configmaps")
		e.fail(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/configmaps") && strings.Contains(r.Query, "watch=true") {
				return apitest.Refuse(429, "TooManyRequests", "storage is (re)initializing")
			}
			return nil
		})
		e.api.Down()
		e.api.Up()
		e.pass(30 * time.Second)
		if why := e.behind("configmaps"); why == "" || why == errMute.Error() {
			t.Errorf("behind: %q", why)
		}
		e.configMap("late", "")
		e.fail(nil)
		e.until(2*mostRetry+shortWatch, "ConfigMaps are level", func() bool { return e.behind("configmaps") == "" })
		if have := e.listsOf("configmaps") - lists; have != 0 {
			t.Errorf("%d lists more, want none: the watch goes on", have)
		}
		if n := e.kind("configmaps").Objects; n != 1 {
			t.Errorf("%d objects, want 1", n)
		}
	})
}
