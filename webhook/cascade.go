package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// reading is how much is read to find out whether anything is protected that a request takes with it: one by one while there
// are few, and in pages when there are more. A condition that looks further than metadata needs the whole of an object, of
// which few fit into memory at once.
type reading struct {
	single int   // objects that are read one by one
	page   int64 // objects in a page
	pages  int
	place  int64 // how many of mostLists it takes
}

var (
	readMetadata = reading{single: 256, page: 50, pages: 80, place: 1}
	readFull     = reading{single: 64, page: 20, pages: 20, place: mostLists}
)

const (
	// lookupTimeout is how long it may take: an answer has to come in time.
	lookupTimeout = 5 * time.Second
	// lookupsAtOnce is how many objects are read at the same time for one request.
	lookupsAtOnce = 8
	// mostLists is how many such lists there are at once, for all requests: whoever made the objects decides how large a page is.
	mostLists = 2
)

// cascade judges what a request takes with it.
func (j *judge) cascade(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	c := j.policies.Set().Cascade(*q)
	if c == nil {
		return policies.Decision{Allowed: true}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	for _, o := range c.Owners() {
		owner, err := j.owner(bounded, o)
		if errors.Is(err, errBusy) {
			return policies.Decision{}, err
		}
		c.Owner(o, owner, err)
	}
	for _, l := range c.Lookups() {
		enough, err := j.lookup(bounded, c, &l)
		if errors.Is(err, errBusy) {
			return policies.Decision{}, err
		}
		if err != nil {
			c.Unread(&l, err)
		}
		if enough {
			break
		}
	}
	d := c.Decide(nil)
	if answers := j.mayBeDisclosed(ctx, q, d); answers != nil {
		d = c.Decide(answers)
	}
	return d, nil
}

// lookup reads the objects of a Lookup. True: enough is known.
func (j *judge) lookup(ctx context.Context, c *policies.Cascade, l *policies.Lookup) (enough bool, err error) {
	most := readMetadata
	if l.Full {
		most = readFull
	}
	read := 0
	var mu sync.Mutex
	saw := func(object map[string]any, m *metav1.ObjectMeta) (bool, error) {
		var namespace map[string]any
		if m.Namespace != "" {
			ns, err := j.namespace(ctx, m.Namespace)
			if err != nil {
				return false, err
			}
			namespace = ns
		}
		mu.Lock()
		defer mu.Unlock()
		read++
		enough = enough || c.Goes(l, m.Namespace, m.UID) && c.Saw(l, object, namespace)
		return enough, nil
	}
	all := true
	if !l.More && len(l.Objects) <= most.single {
		err = j.lookupEach(ctx, l, saw)
	} else {
		all, err = j.lookupList(ctx, l, most, saw)
	}
	if apierrors.IsNotFound(err) {
		err = nil // the kind is not served any more
	}
	// How long it takes is up to who made the objects.
	if !enough && (!all && err == nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		c.TooMany(l, read)
		return false, nil
	}
	return enough, err
}

// lookupList reads pages of a list, when it is its turn.
func (j *judge) lookupList(ctx context.Context, l *policies.Lookup, most reading, saw func(map[string]any, *metav1.ObjectMeta) (bool, error)) (all bool, err error) {
	if err := j.arm.lists.Acquire(ctx, most.place); err != nil {
		return false, err
	}
	defer j.arm.lists.Release(most.place)
	return j.arm.lister.Some(ctx, l.Resource, l.Namespace, l.Full, l.Selector, most.page, most.pages, saw)
}

// lookupEach reads one object after the other, some at a time.
func (j *judge) lookupEach(ctx context.Context, l *policies.Lookup, saw func(map[string]any, *metav1.ObjectMeta) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(lookupsAtOnce)
	for _, o := range l.Objects {
		group.Go(func() error {
			object, m, err := j.arm.lister.Get(reading, l.Resource, o.Namespace, o.Name, l.Full)
			if apierrors.IsNotFound(err) || err == nil && (m.Name != o.Name || m.Namespace != o.Namespace) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("read %s %q: %w", l.Resource.GroupResource(), o.Name, err)
			}
			enough, err := saw(object, m)
			if enough {
				return errEnough
			}
			return err
		})
	}
	if err := group.Wait(); err != nil && !errors.Is(err, errEnough) {
		return err
	}
	return nil
}

// errEnough ends reading.
var errEnough = errors.New("enough has been read")
