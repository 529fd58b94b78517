package enforce

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/controller/request"
	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/live"
)

// troubled is a server whose ConfigMaps answer every change as said, with more of them than wait at once, and one Secret. Policies are about both.
func troubled(t *testing.T, answer func() *apitest.Reply) (*apitest.Server, int) {
	t.Helper()
	api := apitest.New()
	n := 3 * request.DefaultConcurrency
	for i := range n {
		api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%03d, namespace: shop}}", i))
	}
	api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: other, namespace: shop}}")
	api.Put("deletionpolicies", delpol("p", "configmaps, secrets", "propagation: {default: Orphan}"))
	api.Intercept(func(r apitest.Request) *apitest.Reply {
		if r.Method == "PATCH" && strings.Contains(r.Path, "/configmaps/") {
			return answer()
		}
		return nil
	})
	return api, n
}

// One broken kind stops nothing: the next ones are done beside it, it is given up after a minute, and the next pass finds it well.
func TestBackFillGoesOnBesideAKindInTrouble(t *testing.T) {
	var well atomic.Bool
	api, n := troubled(t, func() *apitest.Reply {
		if well.Load() {
			return nil
		}
		return apitest.Refuse(429, "TooManyRequests", "busy")
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state, 0)
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- b.newPass(nil).run(t.Context()) }()
		<-time.After(10 * time.Second)
		if got := finalizersOf(api, "secrets/shop/other"); got != "[weir.dev/propagation]" {
			t.Errorf("after ten seconds the Secret has %s", got)
		}
		err := <-done
		if took := time.Since(began); took < backFillPatience || took > 2*backFillPatience {
			t.Errorf("it was given up after %s, want %s", took, backFillPatience)
		}
		if err == nil || !strings.Contains(err.Error(), "put off: requests about configmaps are answered 429") {
			t.Errorf("error %v", err)
		}
		if now, _ := b.progress(); now.done || now.tallies["p"].stamped != 1 {
			t.Errorf("done %t, %+v", now.done, now.tallies)
		}
		well.Store(true)
		if err := b.newPass(nil).run(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, _ := b.progress(); !now.done || now.tallies["p"].stamped != int64(n+1) {
			t.Errorf("done %t, %+v", now.done, now.tallies)
		}
	})
}

// A kind that is only slow is not given up.
func TestBackFillOfASlowKindGoesOn(t *testing.T) {
	api, n := troubled(t, func() *apitest.Reply {
		<-time.After(2 * time.Second)
		return nil
	})
	inForce(t, api, func(t *testing.T, state *live.State) {
		b := filler(t, api, state, 0)
		began := time.Now()
		done := make(chan error, 1)
		go func() { done <- b.newPass(nil).run(t.Context()) }()
		<-time.After(20 * time.Second)
		if got := finalizersOf(api, "secrets/shop/other"); got != "[weir.dev/propagation]" {
			t.Errorf("after twenty seconds the Secret has %s", got)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if now, _ := b.progress(); !now.done || now.tallies["p"].stamped != int64(n+1) {
			t.Errorf("done %t, %+v, after %s", now.done, now.tallies, time.Since(began))
		}
	})
}
