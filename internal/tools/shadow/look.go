package shadow

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/drain"
	"github.com/weir-dev/weir/controller/follow"
	"github.com/weir-dev/weir/controller/graph"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// mostReads bounds the namespaces that are read in one look.
const mostReads = 10

// Namespace is called with every change to a namespace.
func (s *Shadow) Namespace(name string, how follow.Change) {
	var inv graph.Inventory
	var step drain.Step
	if how != follow.There {
		inv = s.Store.Inventory(name)
		step = whatNext(s.Store.Stats().Kinds, inv, s.Undiscovered())
	}
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch how {
	case follow.Deleting:
		s.ledger.Ending(now, name, step, inv)
	case follow.Went:
		s.ledger.Looked(now, name, step, inv) // its content may have gone since the last look
		s.ledger.Went(now, name)
	case follow.There:
		s.ledger.Returned(now, name)
	}
}

// look looks at all namespaces that are being deleted, or were, and reads those in which nothing
// moves.
func (s *Shadow) look(ctx context.Context) {
	s.mu.Lock()
	ending, gone := s.ledger.Spaces()
	s.mu.Unlock()
	served, undiscovered := s.Store.Stats().Kinds, s.Undiscovered()
	for _, name := range ending {
		inv := s.Store.Inventory(name)
		step := whatNext(served, inv, undiscovered)
		s.mu.Lock()
		s.ledger.Looked(time.Now(), name, step, inv)
		s.mu.Unlock()
	}
	for _, name := range gone {
		inv := s.Store.Inventory(name)
		s.mu.Lock()
		s.ledger.Left(time.Now(), name, inv)
		s.mu.Unlock()
	}
	s.mu.Lock()
	stuck := s.ledger.Stuck(time.Now())
	s.mu.Unlock()
	for _, name := range stuck[:min(len(stuck), mostReads)] {
		r, err := s.read(ctx, name)
		var why string
		s.mu.Lock()
		if err != nil {
			why = s.ledger.Unread(time.Now(), name, err.Error())
		} else {
			why = s.ledger.Read(time.Now(), name, r)
		}
		s.mu.Unlock()
		if err != nil {
			s.Log.Info("cannot read a namespace that stands still, will try again", "namespace", name, "err", err.Error())
		}
		if why != "" {
			s.Log.Info("the cluster has not done what Weir would do", "object", spaceRef(name), "action", report.Drain, "why",
				why, "for", s.Late.String())
		}
	}
}

// read reads the state of a namespace's deletion.
func (s *Shadow) read(ctx context.Context, name string) (Reading, error) {
	ns, err := s.Namespaces.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Reading{}, nil
	case err != nil:
		return Reading{}, fmt.Errorf("read namespace %s: %w", name, err)
	}
	return readingOf(ns), nil
}

// readingOf returns what a namespace says about its deletion. One that is not being deleted is a
// new one of the same name.
func readingOf(ns *corev1.Namespace) Reading {
	r := Reading{There: ns.DeletionTimestamp != nil,
		Held: !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes)}
	var says []string
	for _, c := range ns.Status.Conditions {
		switch {
		case c.Status != corev1.ConditionTrue:
		case c.Type == corev1.NamespaceDeletionContentFailure:
			r.Refused = c.Message
		default:
			says = append(says, c.Message)
		}
	}
	r.Says = strings.Join(says, "; ")
	return r
}
