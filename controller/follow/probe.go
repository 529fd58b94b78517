package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/weir-dev/weir/controller/kinds"
)

const (
	// probeEvery is how often it is asked whether the history goes on, probeTimeout how long the
	// answer may take.
	probeEvery, probeTimeout = 5 * time.Second, 10 * time.Second
	// firstProbe and mostProbe bound the pauses between reads that fail.
	firstProbe, mostProbe = 100 * time.Millisecond, 2 * time.Second
	// followTimeout is for how long the gate waits, once there is contact again, for watches that
	// broke to be level.
	followTimeout = 15 * time.Second
)

// run asks until ctx ends.
func (h *History) run(ctx context.Context) {
	defer h.tether.wg.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	pause := firstProbe
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-h.wake:
		}
		next, goesOn := probeEvery, h.look(ctx)
		h.hasLooked(goesOn)
		if !goesOn {
			next, pause = pause, min(2*pause, mostProbe)
		} else {
			pause = firstProbe
		}
		timer.Reset(next)
	}
}

// look asks once, and tells whether the history goes on as far as can be known, so that the gate is
// open.
func (h *History) look(ctx context.Context) bool {
	h.mu.Lock()
	losses := h.losses
	h.mu.Unlock()
	if !h.tether.held.Load() {
		h.backAt = time.Time{} // who answers from here on may be another one
	}
	if !h.settle(ctx) {
		return false
	}
	now, lower, err := h.read(ctx)
	switch {
	case ctx.Err() != nil:
		return false
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		// So says an API server that is starting, too: it has not read yet who may do what.
		if h.denied.IsZero() {
			h.denied = time.Now()
		}
		if time.Since(h.denied) < forbiddenAfter {
			return !h.closed.Load()
		}
		if !h.blind {
			h.blind = true
			h.log.Info("a history that goes back is only seen by watches that break", "err", err.Error())
		}
		return h.open(losses)
	case err != nil:
		h.denied, h.backAt = time.Time{}, time.Time{}
		if !apierrors.IsTooManyRequests(err) {
			h.log.V(1).Info("cannot ask whether the history goes on", "err", err.Error())
			h.lost()
		}
		return false
	}
	h.denied, h.blind = time.Time{}, false
	if why := now.contradicts(h.last); why != "" {
		h.goBack(ctx, "namespaces: "+why)
	} else if lower != "" {
		h.goBack(ctx, lower)
	}
	h.last = now
	if h.closed.Load() && !h.goesOn(ctx) {
		return false
	}
	h.trusted, h.backAt = now, time.Time{}
	return h.open(losses)
}

// goesOn asks about the kinds of which more was seen than the last reading of namespaces before
// contact was lost can verify: a backup may be younger than that, and older than what was acted on.
// It waits until they are followed again, because restores with a small --bump-revision show in
// what a list shows, and nowhere else; but not for long, and not for aggregated APIs, because a
// kind may fail for reasons of its own. An aggregated API that does not answer is not asked again
// before its watches are: each read that hangs would keep the gate closed for all others.
func (h *History) goesOn(ctx context.Context) bool {
	if h.follows == nil {
		return true
	}
	if h.backAt.IsZero() {
		h.backAt = time.Now()
	}
	kinds := h.follows.Followed()
	for _, mark := range landmarks(kinds) {
		within, cancel := context.WithTimeout(ctx, probeTimeout)
		why, err := mark.missing(within, h.client)
		cancel()
		switch {
		case err != nil && time.Since(h.backAt) < followTimeout: // longer than that a kind may fail for reasons of its own
			return false
		case why != "":
			h.contradicted(mark.gvr, why)
			return false
		}
	}
	silent := map[schema.GroupVersion]bool{}
	for _, k := range kinds {
		seen, behind, of := k.Feed.Reached.Load(), k.Feed.behindNow.Load(), k.GVR.GroupVersion()
		if behind && h.silent[of] { // its watch tells when it answers again
			silent[of] = true
			continue
		}
		if seen <= h.trusted.version {
			continue
		}
		version, err := h.versionOf(ctx, k.GVR)
		switch {
		case err == nil && version != 0 && version < seen:
			h.contradicted(k.GVR, fmt.Sprintf("resourceVersion %d, and %d was seen before", version, seen))
			return false
		case !contactLost(err) && !behind:
		case h.ownServer(ctx, k.GVR):
			if contactLost(err) {
				h.silent[of], silent[of] = true, true
			}
		case time.Since(h.backAt) < followTimeout:
			return false
		}
	}
	h.silent = silent
	return true
}

// versionOf reads consistently how far a kind has come; 0 if its resourceVersions are no numbers.
func (h *History) versionOf(ctx context.Context, gvr schema.GroupVersionResource) (uint64, error) {
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list, err := h.client.Resource(gvr).List(within, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	return VersionNumber(list.ResourceVersion), nil
}

// ownServer tells whether a kind is known to be served by an API server of its own.
func (h *History) ownServer(ctx context.Context, gvr schema.GroupVersionResource) bool {
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	own, err := h.aggregated(within, gvr)
	return err == nil && own
}

// read tells how far the history has come, and why the API server's Lease says that it went back,
// if it does. The connection comes first: what is read over an older one would show nothing of what
// came in between.
func (h *History) read(ctx context.Context) (now reading, lower string, err error) {
	if err := h.tether.hold(ctx); err != nil {
		return reading{}, "", err
	}
	within, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	list, err := h.client.Resource(kinds.Namespaces.WithVersion("v1")).List(within, metav1.ListOptions{Limit: 1})
	if err != nil {
		return reading{}, "", err
	}
	lower, err = h.heartbeat.contradicts(within, h.feedOf(leases.GroupResource()))
	return readingOf(list.ResourceVersion), lower, err
}

// feedOf is what feeds a kind; nil if it is not followed.
func (h *History) feedOf(kind schema.GroupResource) *Feed {
	if h.follows == nil {
		return nil
	}
	for _, k := range h.follows.Followed() {
		if k.Feed.Kind == kind {
			return k.Feed
		}
	}
	return nil
}

// settle draws the consequences for the kinds that are not what they were; false: it could not be
// done yet.
func (h *History) settle(ctx context.Context) bool {
	h.mu.Lock()
	broken := h.broken
	h.broken = map[schema.GroupVersionResource]string{}
	h.mu.Unlock()
	for gvr, why := range broken {
		probe, cancel := context.WithTimeout(ctx, probeTimeout)
		own, err := h.aggregated(probe, gvr)
		cancel()
		switch {
		case err != nil:
			h.log.Info("cannot tell whose history went back", "kind", gvr.String(), "why", why, "err", err.Error())
			h.mu.Lock()
			maps.Copy(h.broken, broken)
			h.mu.Unlock()
			return false
		case own:
			h.log.Info("the history of an aggregated API went back, it is listed again", "kind", gvr.String(), "why", why)
			h.epoch.Add(1)
			h.follows.kindWentBack(gvr.GroupResource())
			h.epoch.Add(1)
			delete(broken, gvr)
		default:
			h.goBack(ctx, gvr.GroupResource().String()+": "+why)
			return true
		}
	}
	return true
}

// goBack makes everything void that was seen and decided so far.
func (h *History) goBack(ctx context.Context, why string) {
	h.closed.Store(true)
	h.epoch.Add(1)
	h.follows.wentBack(ctx, why)
	h.epoch.Add(1) // what was decided until the graph had forgotten rests on the old history, too
	h.last = reading{}
	h.heartbeat.wentBack()
	h.trusted = reading{version: math.MaxUint64} // what is seen from here on is of the new history
	h.mu.Lock()
	clear(h.broken) // said by what was followed before
	h.mu.Unlock()
}

// aggregated asks whether a kind is served by an API server of its own: its APIService names a
// Service then. Where nothing is aggregated there are no APIServices.
func aggregated(client discovery.DiscoveryInterface) func(context.Context, schema.GroupVersionResource) (bool, error) {
	return func(ctx context.Context, gvr schema.GroupVersionResource) (bool, error) {
		if gvr.Group == "" {
			return false, nil
		}
		name := gvr.Version + "." + gvr.Group
		body, err := client.RESTClient().Get().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices", name).DoRaw(ctx)
		switch {
		case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
			return false, nil
		case err != nil:
			return false, fmt.Errorf("read APIService %s: %w", name, err)
		}
		var found struct {
			Spec struct {
				Service *struct{} `json:"service"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(body, &found); err != nil {
			return false, fmt.Errorf("read APIService %s: %w", name, err)
		}
		return found.Spec.Service != nil, nil
	}
}
