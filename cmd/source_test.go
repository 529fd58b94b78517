package cmd

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// Where a certificate comes from shows in which Secret is followed.
func TestSourceOfTheCertificate(t *testing.T) {
	const issued = " --webhook-certificates cert-manager --webhook-cert-issuer Issuer/i"
	for args, want := range map[string]string{
		"--webhook-service shop/weir":                                                      "shop metadata.name=weir-ca",
		"--webhook-url https://weir.test":                                                  "kube-system metadata.name=weir-ca",
		"--webhook-service shop/weir --webhook-cert-secret other/ca":                       "other metadata.name=ca",
		"--webhook-service shop/weir" + issued:                                             "shop metadata.name=weir-webhook-tls",
		"--webhook-service shop/weir" + issued + " --webhook-cert-secret other/tls":        "other metadata.name=tls",
		"--webhook-service shop/weir --webhook-certificates files --webhook-cert-dir none": "",
	} {
		synctest.Test(t, func(t *testing.T) {
			var f targetFlags
			given(t, f.register, args)
			api := apitest.New()
			var mu sync.Mutex
			followed := map[string]bool{}
			api.Intercept(func(r apitest.Request) *apitest.Reply {
				rest, about := strings.CutPrefix(r.Path, "/api/v1/namespaces/")
				if namespace, ok := strings.CutSuffix(rest, "/secrets"); about && ok && r.Method == "GET" {
					query, _ := url.ParseQuery(r.Query)
					mu.Lock()
					followed[namespace+" "+query.Get("fieldSelector")] = true
					mu.Unlock()
				}
				return nil
			})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			source := f.source(api.Config(), false, logr.Discard())
			done := make(chan error, 1)
			go func() { done <- source.Start(ctx) }()
			<-ctx.Done()
			if err := <-done; err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", args, err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(followed) > 1 || want != "" && !followed[want] || want == "" && len(followed) > 0 {
				t.Errorf("%s: followed %v, want %q", args, followed, want)
			}
		})
	}
}
