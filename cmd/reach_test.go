package cmd

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// answers is an API server that says these codes, one after the other, the last one for ever.
type answers struct {
	codes []int
	asked int
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	code := a.codes[min(a.asked, len(a.codes)-1)]
	a.asked++
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"major":"1","minor":"36"}`))}, nil
}

// TestServerThatHasJustStartedIsGivenAMoment: until it has read its roles, an API server refuses
// what everybody may.
func TestServerThatHasJustStartedIsGivenAMoment(t *testing.T) {
	for name, c := range map[string]struct {
		codes []int
		err   string
		took  time.Duration // at most
	}{
		"it is there":               {[]int{200}, "", 0},
		"it has just started":       {[]int{403, 503, 403, 200}, "", time.Second},
		"it goes on refusing":       {[]int{403}, "HTTP status 403", reachFor + time.Second},
		"it does not know who asks": {[]int{401}, "HTTP status 401", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := reach(t.Context(), &rest.Config{Host: "http://api.test", Transport: &answers{codes: c.codes}})
				if (c.err == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if took := time.Since(began); took > c.took {
					t.Errorf("it took %s", took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := reach(ctx, &rest.Config{Host: "http://api.test", Transport: &answers{codes: []int{403}}}); err == nil || time.Since(began) > 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}
