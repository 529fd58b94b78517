package ask

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// listOf is the answer to a list of policies.
func listOf(items ...any) *apitest.Reply {
	return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "weir.dev/v1beta1", "kind": "List", "metadata": map[string]any{"resourceVersion": "1"}, "items": items}}
}

func policy(kind, name string, spec, status map[string]any) map[string]any {
	return map[string]any{"apiVersion": "weir.dev/v1beta1", "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec, "status": status}
}

func condition(of, status, message string) map[string]any {
	return map[string]any{"type": of, "status": status, "reason": "Tested", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}
}

// replies have paths that end so answered.
func (w *town) replies(answers map[string]*apitest.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(r apitest.Request) *apitest.Reply {
		for end, reply := range answers {
			if strings.HasSuffix(r.Path, end) {
				return reply
			}
		}
		return nil
	}
}

// withPolicies are a protection that does not work, a drain policy, and one that is a file.
func withPolicies() map[string]*apitest.Reply {
	ready := map[string]any{"matched": 3, "conditions": []any{condition("Ready", "True", ""), condition("Enforced", "False", "the API server cannot reach the webhook")}}
	return map[string]*apitest.Reply{
		"/deletionpolicies":       listOf(policy("DeletionPolicy", "keep", map[string]any{"protection": map[string]any{}, "validationActions": []any{"Warn"}}, ready)),
		"/ownerreferencepolicies": listOf(),
		"/drainpolicies":          listOf(policy("DrainPolicy", "order", map[string]any{"waves": []any{map[string]any{}}}, nil)),
		"/weir-file-policies": {Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "weir-file-policies"},
			"data": map[string]any{"policies": `[{"kind": "OwnerReferencePolicy", "name": "block", "file": "a.yaml", "spec": {"blockOwnerDeletion": "RequirePermission"}, "status": {}}]`}}},
		"/events": {Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "EventList", "metadata": map[string]any{}, "items": []any{
			policyError("keep", "2026-01-01T00:00:00Z", "an older error"), policyError("keep", "2026-01-02T00:00:00Z", "the condition needs an object"), policyError("other", "2026-01-03T00:00:00Z", "of another")}}},
	}
}

func policyError(policy, at, message string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "Event", "metadata": map[string]any{"name": policy + at, "namespace": "default"}, "reason": "PolicyError", "message": message,
		"source": map[string]any{"component": "weir"}, "lastTimestamp": at, "involvedObject": map[string]any{"kind": "DeletionPolicy", "name": policy}}
}

// TestPoliciesAreShownWhereverTheyAre: objects and files, each with what is wrong with it last.
func TestPoliciesAreShownWhereverTheyAre(t *testing.T) {
	w := newTown(t)
	w.replies(withPolicies())
	s := w.run("policies")
	if s.failed != nil || s.err != "" {
		t.Fatal(s.failed, s.err)
	}
	want := `
KIND                   NAME    FROM     READY   ENFORCED   MATCHED   LAST ERROR
DeletionPolicy         keep    object   True    False      3         the condition needs an object
DrainPolicy            order   object   -       -          -         -
OwnerReferencePolicy   block   a.yaml   -       -          -         -
`
	if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), s.out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPoliciesThatCannotBeReadAreTold: of some it is said that they are not shown; an answer that
// is none is an error, and no table with fewer policies than there are.
func TestPoliciesThatCannotBeReadAreTold(t *testing.T) {
	forbidden := apitest.Refuse(http.StatusForbidden, "Forbidden", "you may not")
	broken := func(data string) *apitest.Reply {
		return &apitest.Reply{Code: 200, Body: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{}, "data": map[string]any{"policies": data}}}
	}
	for name, c := range map[string]struct {
		path   string
		reply  *apitest.Reply
		says   string // besides the answer
		lacks  string // of the answer
		failed string
	}{
		"a kind that may not be listed":   {"/deletionpolicies", forbidden, "incomplete: deletionpolicies: ", "DeletionPolicy", ""},
		"a kind that is not installed":    {"/drainpolicies", apitest.Refuse(404, "NotFound", "the server could not find the requested resource"), "", "DrainPolicy", ""},
		"a kind whose list fails":         {"/ownerreferencepolicies", apitest.Refuse(500, "InternalError", "etcdserver: request timed out"), "", "", "etcdserver: request timed out"},
		"a status that is something else": {"/deletionpolicies", listOf(policy("DeletionPolicy", "keep", nil, map[string]any{"matched": "many"})), "", "", "read the status of DeletionPolicy keep"},
		"files that may not be read":      {"/weir-file-policies", forbidden, "incomplete: policies that are files (--weir-namespace says where to look): ", "a.yaml", ""},
		"no files":                        {"/weir-file-policies", apitest.Refuse(404, "NotFound", "configmaps \"weir-file-policies\" not found"), "", "a.yaml", ""},
		"files that are no JSON":          {"/weir-file-policies", broken(`[{"kind": `), "incomplete: policies that are files", "a.yaml", ""},
		"files that are something else":   {"/weir-file-policies", broken(`{"kind": "DeletionPolicy"}`), "incomplete: policies that are files", "a.yaml", ""},
		"Events that may not be listed":   {"/events", forbidden, "incomplete: last errors: ", "the condition needs an object", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			answers := withPolicies()
			answers[c.path] = c.reply
			w.replies(answers)
			s := w.run("policies", "-o", "json")
			if c.failed != "" {
				s.mustFail(t, c.failed)
				if s.out != "" {
					t.Errorf("it answers all the same: %s", s.out)
				}
				return
			}
			if s.failed != nil || !strings.Contains(s.err, c.says) || c.says == "" && s.err != "" {
				t.Errorf("it says %q, want %q (%v)", s.err, c.says, s.failed)
			}
			for _, of := range []string{"DeletionPolicy", "DrainPolicy", "a.yaml", "the condition needs an object"} {
				hidden := of == c.lacks || of == "the condition needs an object" && c.lacks == "DeletionPolicy"
				if strings.Contains(s.out, of) == hidden {
					t.Errorf("%s: want shown %t:\n%s", of, !hidden, s.out)
				}
			}
		})
	}
}
