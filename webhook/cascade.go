package webhook

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

const (
	// lookupTimeout bounds the lookups for one request.
	lookupTimeout = 5 * time.Second
	// lookupsAtOnce is how many objects are read at the same time for one request.
	lookupsAtOnce = 8
	// mostLists is how many lists are read at the same time for all requests: users decide how large
	// objects are, and so a page.
	mostLists = 2
)

// placesOf returns how many of mostLists a list takes: few lists of whole objects fit into memory.
func placesOf(full bool) int64 {
	if full {
		return mostLists
	}
	return 1
}

// cascade judges what would be deleted with the object of a request.
func (j *judge) cascade(ctx context.Context, q *policies.Question) (policies.Decision, error) {
	c := j.policies.Set().Cascade(*q)
	if c == nil {
		return policies.Decision{Allowed: true}, nil
	}
	bounded, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
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

// lookup reads the objects of a Lookup. It returns true once enough is known.
func (j *judge) lookup(ctx context.Context, c *policies.Cascade, l *policies.Lookup) (enough bool, err error) {
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
		enough = enough || l.Goes(m.Name, m.UID) && c.Saw(l, object, namespace)
		return enough, nil
	}
	all := true
	if l.Single() {
		err = j.lookupEach(ctx, l, saw)
	} else {
		all, err = j.lookupList(ctx, l, saw)
	}
	if apierrors.IsNotFound(err) {
		err = nil // the kind is not served any more
	}
	// Users decide how long it takes, by the objects that they make.
	if !enough && (!all && err == nil || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		c.TooMany(l, read)
		return false, nil
	}
	return enough, err
}

// lookupList reads pages of a list, when it has a place.
func (j *judge) lookupList(
	ctx context.Context, l *policies.Lookup, saw func(map[string]any, *metav1.ObjectMeta) (bool, error),
) (all bool, err error) {
	if err := j.arm.lists.Acquire(ctx, placesOf(l.Full)); err != nil {
		return false, err
	}
	defer j.arm.lists.Release(placesOf(l.Full))
	return j.arm.lister.Some(ctx, l, saw)
}

// lookupEach reads objects one by one, some at the same time.
func (j *judge) lookupEach(
	ctx context.Context, l *policies.Lookup, saw func(map[string]any, *metav1.ObjectMeta) (bool, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, reading := errgroup.WithContext(ctx)
	group.SetLimit(lookupsAtOnce)
	for _, o := range l.Objects {
		group.Go(func() error {
			object, m, err := get(reading, j.arm.lister, l.Resource, o.Namespace, o.Name, l.Full)
			if err != nil || m == nil {
				return err
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

// owners reads the owners that a decision asks about. One that cannot be read stays unknown.
func (j *judge) owners(
	ctx context.Context, lookups []policies.OwnerLookup,
) (map[policies.OwnerRef]policies.Owner, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	read := make([]policies.Owner, len(lookups))
	var group errgroup.Group
	group.SetLimit(lookupsAtOnce)
	for i, l := range lookups {
		group.Go(func() error {
			object, _, err := get(ctx, j.arm.lister, l.Resource, l.Namespace, l.Ref.Name, false)
			if errors.Is(err, errBusy) {
				return err
			}
			if err != nil {
				j.log.say("could not read the owner that a request names", "owner", l.Ref.String(),
					"namespace", l.Namespace, "err", err.Error())
			}
			read[i] = l.Answer(object, err)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := map[policies.OwnerRef]policies.Owner{}
	for i, l := range lookups {
		found[l.Ref] = read[i]
	}
	return found, nil
}
