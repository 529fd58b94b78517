package cmd

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/beside"
	"github.com/weir-dev/weir/controller/doctor"
)

// waiting finds the namespaces with which no namespace controller has begun. One that works writes its conditions some seconds after the delete.
func (p *patient) waiting(ctx context.Context) error {
	const begins = 30 * time.Second // at the latest: it waits 5 s (RB 7.7)
	list, err := p.client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	found := []doctor.Waiting{}
	for i := range list.Items {
		ns := &list.Items[i]
		if ns.DeletionTimestamp == nil || beside.HasBegun(ns) {
			continue
		}
		if age := time.Since(ns.DeletionTimestamp.Time); age > begins {
			found = append(found, doctor.Waiting{Name: ns.Name, For: age})
		}
	}
	p.facts.Waiting = &found
	return nil
}
