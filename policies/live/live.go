package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// gather is how long changes are gathered into one compilation: kubectl apply -f DIR makes many.
const gather = 50 * time.Millisecond

// resources are the resources of the policies' kinds.
var resources = map[string]schema.GroupVersionResource{
	"DeletionPolicy":       v1beta1.GroupVersion.WithResource("deletionpolicies"),
	"DrainPolicy":          v1beta1.GroupVersion.WithResource("drainpolicies"),
	"OwnerReferencePolicy": v1beta1.GroupVersion.WithResource("ownerreferencepolicies"),
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// Resource returns the resource of a policy's kind.
func Resource(kind string) schema.GroupVersionResource { return resources[kind] }

// Options are what a State needs.
type Options struct {
	Config *rest.Config
	// Dir holds policy files, *.yaml, *.yml and *.json; empty for none.
	Dir string
	// Self are the user names of Weir itself: no policy judges them.
	Self []string
	// Namespace is Weir's own, if it has one: propagation is not enforced there.
	Namespace string
	Log       logr.Logger
}

// State is what is in force now.
type State struct {
	options Options
	clock   Clock
	client  dynamic.Interface

	set      atomic.Pointer[policies.Set]
	compiled atomic.Bool  // at least once, with everything
	changed  await.Change // when there is another set
	recheck  chan struct{}

	rewinds    atomic.Int64 // how often the history of the API server went back
	compiledOf atomic.Int64 // how often it had when the policies in force were listed

	objects    map[string]*objects // by kind of policy
	namespaces *objects

	mu       sync.Mutex
	files    []policies.Source
	problems []policies.Problem // of files that cannot be read
	read     bool               // the files have been read
}

// New returns a State that Run fills.
func New(o Options) (*State, error) {
	config := rest.CopyConfig(o.Config)
	config.QPS, config.Burst, config.RateLimiter = -1, 0, nil // reviews wait for NamespaceNow
	s := &State{options: o, recheck: make(chan struct{}, 1), objects: map[string]*objects{}}
	config.Wrap(s.clock.Wrap)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for policies: %w", err)
	}
	s.client = client
	s.set.Store(policies.Build(nil, nil, policies.Options{Self: o.Self, Namespace: o.Namespace}))
	for kind := range resources {
		s.objects[kind] = newObjects(func(bool) { s.again() })
	}
	s.namespaces = newObjects(func(first bool) {
		if first {
			s.again() // which waits for them
		}
	})
	return s, nil
}

// Run follows policies, files and namespaces until ctx ends.
func (s *State) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for kind, gvr := range resources {
		wg.Go(func() { s.objects[kind].follow(ctx, s.client.Resource(gvr), gvr, s.options.Log) })
	}
	wg.Go(func() { s.namespaces.follow(ctx, s.client.Resource(namespaces), namespaces, s.options.Log) })
	wg.Go(func() { s.followFiles(ctx) })
	wg.Go(func() { s.probe(ctx) })
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.recheck:
		}
		if await.Pause(ctx, gather) != nil {
			return nil
		}
		select {
		case <-s.recheck: // it came while changes were gathered
		default:
		}
		s.compile() //nolint:contextcheck // it waits for no other process
	}
}

// again asks for another compilation.
func (s *State) again() {
	select {
	case s.recheck <- struct{}{}:
	default:
	}
}

// compile puts a new set in force, once everything has been read.
func (s *State) compile() {
	of := s.rewinds.Load()
	if s.missing() != nil {
		return
	}
	s.mu.Lock()
	sources := slices.Clone(s.files)
	s.mu.Unlock()
	for _, kind := range s.objects {
		for _, o := range kind.all() {
			sources = append(sources, policies.Source{Object: o})
		}
	}
	set := policies.Build(s.set.Load(), sources, policies.Options{Self: s.options.Self, Namespace: s.options.Namespace})
	s.set.Store(set)
	s.compiled.Store(true)
	s.compiledOf.Store(of)
	for _, p := range s.Problems() {
		s.options.Log.Info("something is wrong with a policy", "problem", p.String())
	}
	s.options.Log.Info("policies are in force", "policies", len(sources), "webhooks", set.Asks())
	s.changed.Notify()
}

// missing returns what has not been read yet, as an error.
func (s *State) missing() error {
	for kind, o := range s.objects {
		if !o.ready() {
			return fmt.Errorf("waiting for the first list of %s", resources[kind].GroupResource())
		}
	}
	if !s.namespaces.ready() {
		return errors.New("waiting for the first list of namespaces")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.read {
		return fmt.Errorf("waiting for the policy files of %s", s.options.Dir)
	}
	return nil
}

// Ready returns why the policies are not in force yet; nil once they are. It stays nil.
func (s *State) Ready() error {
	if s.compiled.Load() {
		return nil
	}
	if err := s.missing(); err != nil {
		return err
	}
	return errors.New("policies are being compiled")
}

// Set returns the policies in force: none until Ready.
func (s *State) Set() *policies.Set { return s.set.Load() }

// Now returns the time by the API server's clock.
func (s *State) Now() time.Time { return s.clock.Now() }

// Changed returns a channel that is closed when the next set is in force.
func (s *State) Changed() <-chan struct{} { return s.changed.Next() }

// Namespace returns a Namespace as last seen, or nil. It must not be modified.
func (s *State) Namespace(name string) map[string]any { return s.namespaces.get(name) }

// NamespaceNow returns a Namespace as last seen or, if it has not been seen yet, as the API server
// has it; nil if there is none. It must not be modified.
func (s *State) NamespaceNow(ctx context.Context, name string) (map[string]any, error) {
	if ns := s.Namespace(name); ns != nil {
		return ns, nil
	}
	ns, err := s.client.Resource(namespaces).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return ns.Object, nil
}

// Object returns a policy as the API server has it, with its status; nil if there is none. It must
// not be modified.
func (s *State) Object(key policies.PolicyKey) map[string]any {
	if kind := s.objects[key.Kind]; kind != nil {
		return kind.get(key.Name)
	}
	return nil
}

// Problems returns all that is wrong with the policies in force, and with files that cannot be
// read.
func (s *State) Problems() []policies.Problem {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Concat(s.problems, s.set.Load().Problems())
}

// Unreadable returns how many documents of policy files are no policies at all.
func (s *State) Unreadable() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.problems)
}
