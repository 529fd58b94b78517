package enforce

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/policies/live"
)

// alone is an API server that may judge by the ValidatingAdmissionPolicies that are there.
type alone struct {
	*apitest.Server
	version string
	refuses string // requests to write that are answered with 403

	mu     sync.Mutex
	judges bool
}

func (a *alone) setJudges(judges bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.judges = judges
}

const admissionPolicies = "validatingadmissionpolicies.admissionregistration.k8s.io/"

func newAlone() *alone {
	a := &alone{Server: apitest.New(), version: "v1.36.3", judges: true}
	a.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: weir-system}}")
	a.Intercept(func(r apitest.Request) *apitest.Reply {
		switch {
		case r.Path == "/version":
			return &apitest.Reply{Code: 200, Body: map[string]any{"gitVersion": a.version}}
		case a.refuses != "" && r.Method != "GET" && strings.Contains(r.Path+r.Body, a.refuses):
			return apitest.Refuse(403, "Forbidden", "not you")
		case r.Method == "DELETE" && strings.HasSuffix(r.Path, "/leases/weir-canary"):
			return a.canary(r)
		}
		return nil
	})
	return a
}

// canary answers as the canary that is there would.
func (a *alone) canary(r apitest.Request) *apitest.Reply {
	var o metav1.DeleteOptions
	if err := json.Unmarshal([]byte(r.Body), &o); err != nil || len(o.DryRun) != 1 {
		return apitest.Refuse(400, "BadRequest", "no dry run")
	}
	names := a.names("weir-canary-")
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		if a.judges && *o.PropagationPolicy == metav1.DeletePropagationOrphan {
			return apitest.Refuse(403, "Forbidden", policies.InProcessAnswer(name, *o.GracePeriodSeconds))
		}
	}
	return &apitest.Reply{Code: 200, Body: map[string]any{}}
}

// names are those of the ValidatingAdmissionPolicies that begin so.
func (a *alone) names(prefix string) (out []string) {
	client := kubernetes.NewForConfigOrDie(a.Config()).AdmissionregistrationV1()
	list, err := client.ValidatingAdmissionPolicies().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		panic(err)
	}
	for _, o := range list.Items {
		if strings.HasPrefix(o.Name, prefix) {
			out = append(out, o.Name)
		}
	}
	return out
}

func (a *alone) keeper(state *live.State) *inProcess {
	client := kubernetes.NewForConfigOrDie(a.Config())
	c := &configurator{namespaces: client.CoreV1().Namespaces(), target: &WebhookTarget{}}
	c.target.Service.Namespace = "weir-system"
	return &inProcess{client: client.AdmissionregistrationV1(), version: client.Discovery(),
		leases: client.CoordinationV1().Leases("weir-system"), namespace: "weir-system",
		owners: c.owners, policies: state, board: &board{}, log: logr.Discard()}
}

func TestTheAPIServerIsToldWhatToJudgeByItself(t *testing.T) {
	api := newAlone()
	required := "propagation: {allowed: [Orphan]}"
	api.Put("deletionpolicies", delpol("p", "configmaps", required))
	inForce(t, api.Server, func(t *testing.T, state *live.State) {
		p := api.keeper(state)
		key := policies.PolicyKey{Kind: "DeletionPolicy", Name: "p"}
		step := func(what string, free bool, says string, there ...string) judged {
			t.Helper()
			is, err := p.keep(t.Context(), state.Set(), free)
			got := string(is.says[key].status) + " " + is.says[key].reason
			if want, _, _ := strings.Cut(says, ": "); got != want {
				t.Errorf("%s: %s: %s (%v)", what, got, is.says[key].message, err)
			}
			if _, want, ok := strings.Cut(says, ": "); ok && !strings.Contains(is.says[key].message, want) {
				t.Errorf("%s: %s does not say %q", what, is.says[key].message, want)
			}
			if diff := cmp.Diff(there, api.names("weir-deletionpolicy-")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
			return is
		}
		policy := func(text string) {
			changed := state.Changed()
			api.Put("deletionpolicies", text)
			<-changed
		}
		api.judges = false
		step("it is written, and the API server has not read it", false, "False InProgress", "weir-deletionpolicy-p")
		api.judges = true
		step("it has", false, "True Judged", "weir-deletionpolicy-p")
		api.Requests()
		step("nothing more is to do", false, "True Judged", "weir-deletionpolicy-p")
		for _, r := range api.Requests() {
			if r.Method != "GET" && !strings.Contains(r.Path, "/leases/") {
				t.Errorf("%s although nothing was to do", r)
			}
		}
		binding := api.Get("validatingadmissionpolicybindings.admissionregistration.k8s.io/weir-deletionpolicy-p")
		if got := fmt.Sprint(binding["spec"].(map[string]any)["validationActions"]); got != "[Deny]" {
			t.Errorf("validationActions %s", got)
		}
		if got := fmt.Sprint(binding["metadata"].(map[string]any)["ownerReferences"]); !strings.Contains(got, "weir-system") {
			t.Errorf("owners %s", got)
		}

		// What was proven holds no more when something else is there.
		canary := api.names("weir-canary-")
		api.Remove("validatingadmissionpolicybindings.admissionregistration.k8s.io/weir-deletionpolicy-p")
		api.Remove(admissionPolicies + "weir-deletionpolicy-p")
		policy(delpol("p", "configmaps", required+", failurePolicy: Fail"))
		step("somebody deleted it", false, "True Judged", "weir-deletionpolicy-p")
		policy(delpol("p", "configmaps", required))
		if is := step("what changes waits for the webhook", false, "False InProgress: as it was", "weir-deletionpolicy-p"); !is.waits {
			t.Error("nothing waits")
		}
		step("which is asked", true, "True Judged", "weir-deletionpolicy-p")
		if now := api.names("weir-canary-"); len(now) != 1 || now[0] == canary[0] {
			t.Errorf("canaries %v, before %v", now, canary)
		}

		policy(delpol("p", "configmaps", "protection: {maxDependents: 3}"))
		step("what cannot be judged any more waits, too", false, "False NeedsWeir: spec.protection: the API server cannot count", "weir-deletionpolicy-p")
		step("and is deleted then", true, "False NeedsWeir")
		policy(delpol("p", "configmaps", "protection: {confirmation: Required}"))
		step("a part", false, "False Partial: spec.protection.inCascades: ", "weir-deletionpolicy-p")
		policy(delpol("p", "configmaps", required+", validationActions: [Warn]"))
		step("on trial", true, "False NeedsWeir: on trial")
		policy(delpol("p", "configmaps", "protection: {confirmation: Required}, priority: 9999999"))
		step("broken", true, "False NotValid")
		policy(delpol("p", "configmaps", required))
		api.refuses = "admissionpolicies"
		step("it may not be written", true, "False NotWritten: not you")
		api.refuses, api.version = "", "v1.29.4"
		step("an old API server", true, "False NeedsWeir: 1.29.4, and ValidatingAdmissionPolicies need 1.30")
		api.version = "v1.36.3"
		step("a new one", true, "True Judged", "weir-deletionpolicy-p")
		selecting := func(spec, label string) {
			policy(strings.Replace(delpol("p", "configmaps", spec), "match: {",
				"match: {objectSelector: {matchLabels: {a: "+label+"}}, ", 1))
		}
		writes := func(what string, want ...string) {
			t.Helper()
			api.Requests()
			step(what, true, "True Judged", "weir-deletionpolicy-p")
			var got []string
			for _, r := range api.Requests() {
				if kind, ours := strings.CutPrefix(r.Path, "/apis/admissionregistration.k8s.io/v1/validatingadmission"); ours &&
					r.Method != "GET" && strings.Contains(r.Path+r.Body, "weir-deletionpolicy-p") {
					kind, _, _ = strings.Cut(kind, "/")
					got = append(got, r.Method+" "+kind)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", what, diff)
			}
		}
		selecting(required, "b")
		writes("other objects", "PUT policybindings")
		selecting("propagation: {allowed: [Foreground]}", "c")
		writes("something else of others is judged by nothing on the way", "DELETE policybindings", "PUT policies", "POST policybindings")
		policy(delpol("p", "configmaps", required))
		step("as before", true, "True Judged", "weir-deletionpolicy-p")
		api.Remove("validatingadmissionpolicybindings.admissionregistration.k8s.io/" + policies.InProcessGuardName)
		step("somebody broke the glass", false, "True Judged", "weir-deletionpolicy-p")
		if api.Get("validatingadmissionpolicybindings.admissionregistration.k8s.io/"+policies.InProcessGuardName) == nil {
			t.Error("the guard of the webhook configurations does not come again")
		}
		changed := state.Changed()
		api.Remove("deletionpolicies.weir.dev/p")
		<-changed
		step("a policy that is gone leaves nothing, whatever the webhook does", false, " ")
		if diff := cmp.Diff([]string{policies.InProcessGuardName}, api.names("weir-")); diff != "" {
			t.Errorf("what is left (-want +got):\n%s", diff)
		}

		policy(delpol("p", "configmaps", required))
		step("once more", false, "True Judged", "weir-deletionpolicy-p")
		p.off = true
		step("off, when the webhook judges", false, "False NeedsWeir: Off", "weir-deletionpolicy-p")
		step("it does", true, "False NeedsWeir: Off")
		if left := api.names("weir-"); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// TestTheWebhookIsAskedUntilBothHaveJudgedForAWhile, and again before anything changes.
func TestTheWebhookIsAskedUntilBothHaveJudgedForAWhile(t *testing.T) {
	api := newAlone()
	required := "propagation: {allowed: [Orphan]}"
	api.Put("deletionpolicies", delpol("p", "configmaps", required))
	inForce(t, api.Server, func(t *testing.T, state *live.State) {
		p := api.keeper(state)
		p.overlap = 30 * time.Second
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); p.run(ctx) }()
		c := &configurator{policies: state, canary: &canary{board: p.board}}
		asked := func(what string, want bool, after time.Duration) {
			t.Helper()
			elapse(after)
			if got := len(c.instead(state.Set())) == 0; got != want {
				t.Errorf("%s: the webhook is asked: %t", what, got)
			}
		}
		asked("both judge", true, 29*time.Second)
		asked("they have", false, 20*time.Second)
		api.setJudges(false)
		asked("the API server does not any more", true, 16*time.Second)
		api.setJudges(true)
		asked("it does again", true, 29*time.Second)
		asked("for a while", false, 20*time.Second)
		changed := state.Changed()
		api.Put("deletionpolicies", delpol("p", "secrets", required))
		<-changed
		asked("another policy", true, 0)
		asked("which the webhook is not asked about yet", true, time.Minute)
		p.board.update(func(s *snapshot) { s.asked.of = state.Set() })
		asked("it is", true, 20*time.Second)
		asked("for a while", false, 30*time.Second)
		cancel()
		<-done
	})
}

func TestTheAPIServerJudgesAFewPoliciesByItself(t *testing.T) {
	api := newAlone()
	for i := range 20 {
		api.Put("deletionpolicies", delpol(fmt.Sprintf("p%02d", i), "configmaps", "protection: {confirmation: Required, inCascades: Ignore}"))
	}
	inForce(t, api.Server, func(t *testing.T, state *live.State) {
		is, err := api.keeper(state).keep(t.Context(), state.Set(), false)
		if err != nil {
			t.Fatal(err)
		}
		last := is.says[policies.PolicyKey{Kind: "DeletionPolicy", Name: "p16"}]
		if got := len(api.names("weir-deletionpolicy-")); got != mostInProcess || !strings.Contains(last.message, "16 policies") {
			t.Errorf("%d are written, and of the next is said: %s", got, last.message)
		}
	})
}

// TestForeignAdmissionPoliciesAreLeftAlone: the chart's guard of the namespace begins with weir-,
// too, and somebody may have a policy by a name of ours.
func TestForeignAdmissionPoliciesAreLeftAlone(t *testing.T) {
	api := newAlone()
	api.Put("deletionpolicies", delpol("p", "configmaps", "protection: {confirmation: Required, inCascades: Ignore}"))
	for _, name := range []string{"weir-namespace", "weir-deletionpolicy-p"} {
		api.Put("validatingadmissionpolicies", "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: "+name+"}}")
	}
	inForce(t, api.Server, func(t *testing.T, state *live.State) {
		is, err := api.keeper(state).keep(t.Context(), state.Set(), true)
		if err == nil || is.says[policies.PolicyKey{Kind: "DeletionPolicy", Name: "p"}].reason != "NotWritten" {
			t.Errorf("%v, %v", is.says, err)
		}
		for _, name := range []string{"weir-namespace", "weir-deletionpolicy-p"} {
			if spec := api.Get(admissionPolicies + name)["spec"]; spec != nil {
				t.Errorf("%s is %v", name, spec)
			}
		}
	})
}
