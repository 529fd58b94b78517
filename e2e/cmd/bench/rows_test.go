//go:build full

package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRowsShareTheTime: each is measured once at least while there is time, what one leaves the
// next may use, and the report names what had fewer rounds than were asked for.
func TestRowsShareTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		limit time.Duration
		takes []time.Duration // a round of each row
		want  []int           // rounds
		short []string
	}{
		"no limit":               {0, []time.Duration{time.Hour, time.Hour}, []int{3, 3}, nil},
		"enough":                 {time.Hour, []time.Duration{9 * time.Minute, 9 * time.Minute}, []int{3, 3}, nil},
		"the first takes long":   {time.Hour, []time.Duration{16 * time.Minute, time.Minute}, []int{1, 3}, []string{"1 of row 0"}},
		"what is left is used":   {time.Hour, []time.Duration{time.Minute, 18 * time.Minute}, []int{3, 3}, nil},
		"two of three":           {time.Hour, []time.Duration{11 * time.Minute, 11 * time.Minute}, []int{2, 3}, []string{"2 of row 0"}},
		"no time for the last":   {time.Hour, []time.Duration{70 * time.Minute, time.Minute, time.Minute}, []int{1, 0, 0}, []string{"1 of row 0", "0 of row 1", "0 of row 2"}},
		"it is over to the hour": {time.Hour, []time.Duration{time.Hour, time.Minute}, []int{1, 0}, []string{"1 of row 0", "0 of row 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bench{options: options{limit: c.limit}, started: time.Now()}
				got := make([]int, len(c.takes))
				var rows []row
				for i, takes := range c.takes {
					rows = append(rows, row{"row " + string(rune('0'+i)), func(context.Context, *report) error {
						for round := range b.inTime(3) {
							<-time.After(takes)
							if got[i]++; got[i] != round+1 {
								t.Errorf("round %d is the %dth", round, got[i])
							}
						}
						return nil
					}})
				}
				if err := b.runRows(t.Context(), nil, rows); err != nil {
					t.Error(err)
				}
				if !slices.Equal(got, c.want) || !slices.Equal(b.short, c.short) {
					t.Errorf("%v rounds, want %v; %q, want %q", got, c.want, b.short, c.short)
				}
				if head := newReport(b).head(); strings.Contains(head, "no time for all rounds") != (len(c.short) > 0) {
					t.Errorf("the report begins with %s", head)
				}
			})
		})
	}
}

// TestRowThatFailsIsNamed, and is the last.
func TestRowThatFailsIsNamed(t *testing.T) {
	fails := func(context.Context, *report) error { return errors.New("etcd is away") }
	err := (&bench{}).runRows(t.Context(), nil, []row{{"first", fails}, {"second", fails}})
	if err == nil || err.Error() != "first: etcd is away" {
		t.Error(err)
	}
}
