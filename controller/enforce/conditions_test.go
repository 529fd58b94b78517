package enforce

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// The reasons, by what API servers say. No user may read the token in it, and what is said must be
// the same each time.
func TestWhyTheAPIServerDoesNotAsk(t *testing.T) {
	const post = `Internal error occurred: failed calling webhook "canary.weir.dev": failed to call webhook: Post "https://weir-webhook.weir-system.svc:443/tOkEn/canary?timeout=10s": `
	const call = `Internal error occurred: failed calling webhook "canary.weir.dev": failed to call webhook: `
	for name, c := range map[string]struct {
		err  string
		want string // status and reason
	}{
		"our refusal":                 {`admission webhook "canary.weir.dev" denied the request: ours`, "True Reached"},
		"somebody else's number":      {`admission webhook "canary.weir.dev" denied the request: theirs`, "False NotReached"},
		"let pass":                    {"", "False NotAsked"},
		"nobody listens":              {post + "dial tcp 10.0.0.7:443: connect: connection refused", "False NotReached"},
		"no name":                     {post + "dial tcp: lookup weir.test on 10.0.0.10:53: no such host", "False NotReached"},
		"DNS that fails":              {post + "dial tcp: lookup weir.test on 10.0.0.10:53: server misbehaving", "False NotReached"},
		"no route":                    {post + "dial tcp 10.0.0.7:443: connect: no route to host", "False NotReached"},
		"no pod":                      {post + `no endpoints available for service "weir-webhook"`, "False NotReached"},
		"no Service":                  {post + `service "weir-webhook" not found`, "False NotReached"},
		"cut off":                     {post + "EOF", "False NotReached"},
		"reset":                       {post + "read tcp 10.0.0.1:53122->10.0.0.7:443: read: connection reset by peer", "False NotReached"},
		"packets are dropped":         {post + "context deadline exceeded", "False NotReached"},
		"it hangs, in TLS":            {post + "net/http: TLS handshake timeout", "False NotReached"},
		"it hangs, as older ones say": {post + "net/http: request canceled (Client.Timeout exceeded while awaiting headers)", "False NotReached"},
		"another CA":                  {post + "tls: failed to verify certificate: x509: certificate signed by unknown authority", "False NotReached"},
		"another name":                {post + "tls: failed to verify certificate: x509: cannot validate certificate for 127.0.0.1 because it doesn't contain any IP SANs", "False NotReached"},
		"expired":                     {post + "tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-01-01T00:00:00Z is after 2025-01-01T00:00:00Z", "False NotReached"},
		"it wants a certificate":      {post + "remote error: tls: certificate required", "False NotReached"},
		"another token":               {call + "the server could not find the requested resource", "False NotReached"},
		"it is starting":              {call + `an error on the server ("weir is starting: waiting for the first list of namespaces") has prevented the request from succeeding`, "False NotReached"},
		"too busy":                    {call + "the server has received too many requests and has asked us to try again later", "False NotReached"},
		"no right to":                 {`leases.coordination.k8s.io "weir-canary" is forbidden: User "weir" cannot delete resource "leases"`, "Unknown NotTried"},
		"another's webhook":           {`admission webhook "other.example.com" denied the request: leases are ours`, "Unknown NotTried"},
		"no API server":               {`Delete "https://10.0.0.1:6443/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/weir-canary": dial tcp 10.0.0.1:6443: connect: connection refused`, "Unknown NotTried"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			if c.err != "" {
				err = errors.New(c.err)
			}
			r := reachOf(err, "ours")
			if got := string(r.status) + " " + r.reason; got != c.want {
				t.Errorf("%s, want %s: %s", got, c.want, r.message)
			}
			for _, never := range []string{"tOkEn", "53122", "2026-01-01", "timeout=10s"} {
				if strings.Contains(r.message, never) {
					t.Errorf("it shows %s: %s", never, r.message)
				}
			}
			if strings.HasPrefix(c.err, "Internal") && !strings.HasSuffix(r.message, c.err[len(c.err)-3:]) {
				t.Errorf("the API server's own words are not in it: %s", r.message)
			}
		})
	}
}

// The canary's entry is there whatever the policies are, and holds up nothing that a user means.
// Beside it is the one for policies that are written, which fails open.
func TestTheCanaryHasAnEntryOfItsOwn(t *testing.T) {
	api := apitest.New()
	inForce(t, api, func(t *testing.T, state *live.State) {
		client := fake.NewClientset()
		c := &configurator{client: client.AdmissionregistrationV1(), policies: state, log: logr.Discard(), target: &WebhookTarget{
			URL: "https://weir.test", Certificates: &bundle{pem: []byte("pem")}, Token: &tokener{next: "token"}, CanaryNamespace: "weir-system",
			Paths: map[policies.Webhook]string{policies.WebhookDelete: "/delete", policies.WebhookCanary: "/canary", policies.WebhookPolicies: "/policies"},
		}}
		c.kept = func() []schema.GroupResource { return nil }
		c.canary = newCanary("", client.CoordinationV1(), &board{}, nil, testEnforcementMetrics(t), logr.Discard())
		step := func(what string, write string, want ...string) {
			t.Helper()
			if err := c.apply(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if diff := cmp.Diff([]string{write}, writes(client)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			have, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), policies.WebhookConfigurations, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, e := range have.Webhooks {
				got = append(got, fmt.Sprint(e.Name, " ", *e.FailurePolicy, " ", *e.SideEffects, " ", *e.ClientConfig.URL))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		always := []string{"policies.weir.dev Ignore None https://weir.test/token/policies", "canary.weir.dev Fail None https://weir.test/token/canary"}
		step("where no policy asks", "create validatingwebhookconfigurations", always...)
		changed := state.Changed()
		api.Put("deletionpolicies", delpol("p", "configmaps", "protection: {maxDependents: 3, inCascades: Ignore}"))
		<-changed
		step("with the first policy", "update validatingwebhookconfigurations",
			slices.Concat([]string{"delete.weir.dev Ignore NoneOnDryRun https://weir.test/token/delete-ignore"}, always)...)
		e := c.validating(policies.CanaryRules("weir-system"), called{})
		for want, got := range map[string]string{
			"weir.dev/canary=true":                    labelsOf(e.ObjectSelector),
			"kubernetes.io/metadata.name=weir-system": labelsOf(e.NamespaceSelector),
			"has(request.dryRun) && request.dryRun && has(request.name) && request.name == 'weir-canary'": e.MatchConditions[0].Expression,
		} {
			if got != want {
				t.Errorf("it is narrowed by %q, want %q", got, want)
			}
		}
	})
}
