package undo

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/weir-dev/weir/archive"
	"github.com/weir-dev/weir/controller/await"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/policies/v1beta1"
)

const (
	// shipEvery is how often trees are shipped to the bucket, if there is one. They are also shipped
	// when one was recorded. shipPause is the least time between two rounds, each of which lists all
	// trees.
	shipEvery = time.Minute
	shipPause = time.Second
	// shipWithin bounds the time for one tree. No DELETE waits for it.
	shipWithin = 5 * time.Minute
)

// shipping ships trees until ctx ends.
func (r *Recorder) shipping(ctx context.Context) {
	for ctx.Err() == nil {
		if err := r.ship(ctx); err != nil && ctx.Err() == nil {
			r.metrics.recorded.WithLabelValues("unshipped").Inc()
			r.Log.Info("cannot ship deleted trees to the bucket, will try again: they stay in the cluster, within --archive-mib",
				"err", err.Error())
		}
		_ = await.Pause(ctx, shipPause)
		select {
		case <-ctx.Done():
		case <-r.more:
		case <-time.After(shipEvery):
		}
	}
}

// ship copies trees to the bucket, deletes the chunks of trees that were copied, and removes from
// the bucket the trees that are not in the catalogue.
func (r *Recorder) ship(ctx context.Context) error {
	bucket, err := r.Archive.Bucket(ctx)
	if errors.Is(err, archive.ErrNoBucket) {
		return nil
	}
	if err != nil {
		return err
	}
	cluster, err := r.Archive.Cluster(ctx)
	if err != nil {
		return err
	}
	var there []string // read before the catalogue: a tree is in the catalogue first
	for name, err := range bucket.Trees(ctx, cluster) {
		if err != nil {
			return err
		}
		there = append(there, name)
	}
	trees, err := r.Archive.List(ctx)
	if err != nil {
		return err
	}
	known := sets.New[string]()
	var errs []error
	for i := range trees {
		t := &trees[i]
		known.Insert(t.Name)
		if !archive.Durable(t) {
			continue
		}
		if t.Status.BucketPrefix == "" {
			if err := r.shipTree(ctx, bucket, cluster, t); err != nil {
				errs = append(errs, err)
				continue
			}
		}
		if slices.ContainsFunc(r.Store.Dependents(t.UID), func(v graph.View) bool { return v.Kind == archive.ChunkKind }) {
			errs = append(errs, r.Archive.DropShipped(ctx, bucket, t))
		}
	}
	for _, name := range there {
		if !known.Has(name) {
			errs = append(errs, bucket.Remove(ctx, cluster, name))
		}
	}
	return errors.Join(errs...)
}

func (r *Recorder) shipTree(ctx context.Context, bucket *archive.Bucket, cluster string, t *v1beta1.DeletedTree) error {
	ctx, cancel := context.WithTimeout(ctx, shipWithin)
	defer cancel()
	if err := r.Archive.Ship(ctx, bucket, cluster, t); err != nil {
		return err
	}
	r.metrics.recorded.WithLabelValues("shipped").Inc()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setLocked(entryOf(t))
	return nil
}
