package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// Tests run one command after the other, and goroutines of client-go may outlive one.
func init() { silence() }

// town is a cluster in memory that the plugin is run against, over HTTP: ConfigMap boss owns leaf,
// which owns twig.
type town struct {
	*testing.T
	api  *apitest.Server
	url  string
	kept string // a directory

	mu      sync.Mutex
	answer  func(apitest.Request) *apitest.Reply
	written []string                        // requests that are no reads
	core    []metav1.APIResource            // kinds without a group that it serves besides townKinds
	groups  map[string][]metav1.APIResource // others, by group and version
}

var townKinds = []metav1.APIResource{
	{Name: "namespaces", SingularName: "namespace", Kind: "Namespace", Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}},
	{Name: "configmaps", SingularName: "configmap", ShortNames: []string{"cm"}, Kind: "ConfigMap", Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}},
	{Name: "secrets", SingularName: "secret", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}},
	{Name: "secrets/status", Kind: "Secret", Namespaced: true, Verbs: metav1.Verbs{"get"}},
}

func newTown(t *testing.T) *town {
	w := &town{T: t, api: apitest.New(), kept: t.TempDir()}
	w.api.Intercept(w.intercept)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		q := r.Clone(r.Context())
		q.RequestURI = ""
		answer, err := w.api.RoundTrip(q)
		if err != nil {
			panic(http.ErrAbortHandler) // nothing is there
		}
		defer answer.Body.Close()
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(answer.StatusCode)
		to := io.Writer(out)
		if r.URL.Query().Get("watch") != "" {
			_ = http.NewResponseController(out).Flush()
			to = flushing{out}
		}
		_, _ = io.Copy(to, answer.Body) // a client that went away knows
	}))
	t.Cleanup(server.Close)
	w.url = server.URL
	w.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
	w.put("boss", "")
	w.put("leaf", "boss")
	w.put("twig", "leaf")
	return w
}

// put makes a ConfigMap of an owner; more is YAML of its metadata, after a comma.
func (w *town) put(name, owner string, more ...string) {
	if owner != "" {
		more = append(more, fmt.Sprintf(", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: %s, uid: uid-%s}]", owner, owner))
	}
	w.api.Put("configmaps", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: shop%s}}", name, strings.Join(more, "")))
}

const terminating = ", deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/hold]"

func (w *town) intercept(r apitest.Request) *apitest.Reply {
	w.mu.Lock()
	answer := w.answer
	if r.Method != http.MethodGet {
		w.written = append(w.written, strings.Join([]string{r.Method, r.Path, r.Query, r.Body}, " "))
	}
	w.mu.Unlock()
	if answer != nil {
		if reply := answer(r); reply != nil {
			return reply
		}
	}
	switch r.Path {
	case "/api":
		return &apitest.Reply{Code: 200, Body: metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}}
	case "/apis":
		return &apitest.Reply{Code: 200, Body: w.groupList()}
	case "/api/v1":
		return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1", APIResources: slices.Concat(townKinds, w.core)}}
	}
	if gv, found := strings.CutPrefix(r.Path, "/apis/"); found && w.groups[gv] != nil {
		return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv, APIResources: w.groups[gv]}}
	}
	return nil
}

// groupList are the groups besides that without a name.
func (w *town) groupList() metav1.APIGroupList {
	out := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	for _, gv := range slices.Sorted(maps.Keys(w.groups)) {
		group, version, _ := strings.Cut(gv, "/")
		is := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: version}
		out.Groups = append(out.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{is}, PreferredVersion: is})
	}
	return out
}

// flushing writes what it is given to the client at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(data []byte) (int, error) {
	n, err := f.ResponseWriter.Write(data)
	return n, errors.Join(err, http.NewResponseController(f.ResponseWriter).Flush())
}

// refuse has requests whose path ends so be refused.
func (w *town) refuse(path string, code int, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = func(r apitest.Request) *apitest.Reply {
		if strings.HasSuffix(r.Path, path) {
			return apitest.Refuse(code, reason, message)
		}
		return nil
	}
}

// run runs the plugin; $KEPT in an argument is a directory.
func (w *town) run(args ...string) said {
	w.Helper()
	args = slices.Clone(args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "$KEPT", w.kept)
	}
	return weir(w.T, w.url, append(args, "--cache-dir", w.kept)...)
}

// goes names the objects that a plan, printed as JSON, deletes: one a line.
func (s said) goes(t *testing.T) string {
	t.Helper()
	var plan insight.Plan
	if err := json.Unmarshal([]byte(s.out), &plan); err != nil {
		t.Fatal(err, s.failed)
	}
	var out strings.Builder
	for _, i := range plan.Items {
		if i.Outcome == insight.Deleted || i.Outcome == insight.Stuck {
			fmt.Fprintln(&out, i.Object)
		}
	}
	return out.String()
}

// code is the exit code of a command: that which it chose, or 1 for an error.
func (s said) code() int {
	var exit ExitError
	switch {
	case s.failed == nil:
		return 0
	case errors.As(s.failed, &exit):
		return exit.Code
	}
	return 1
}

// TestCommandsAnswer: in each output, and what is asked for in a way that cannot be meant is an
// error that says how it can.
func TestCommandsAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		put  func(*town)
		args string
		out  []string // that it prints
		err  string   // what is wrong; empty: nothing
	}{
		"a plan":                        {nil, "plan configmap boss", []string{"Plan: 3 objects are deleted in 3 steps."}, ""},
		"a plan, by another name":       {nil, "plan cm/boss", []string{"Plan: 3 objects are deleted in 3 steps."}, ""},
		"a plan of two":                 {nil, "plan cm/leaf cm/twig", []string{"Plan: 2 objects are deleted"}, ""},
		"a plan with orphans":           {nil, "plan cm boss --cascade=orphan", []string{"Plan: 1 object is deleted in 2 steps, 1 is kept and loses a reference."}, ""},
		"a plan as JSON":                {nil, "plan cm boss -o json", []string{`"apiVersion": "insight.weir.dev/v1beta1"`, `"kind": "Plan"`, `"name": "twig"`}, ""},
		"a plan as YAML":                {nil, "plan cm boss -o yaml", []string{"apiVersion: insight.weir.dev/v1beta1\n", "kind: Plan\n"}, ""},
		"a plan of what a selector has": {func(w *town) { w.put("red", "", ", labels: {colour: red}") }, "plan cm -l colour=red", []string{"red"}, ""},
		"a plan of a kind that is held": {func(w *town) {
			w.api.Put("heldcollections", `{apiVersion: weir.dev/v1beta1, kind: HeldCollection, metadata: {name: widgets.example.com}}`)
		}, "held widgets.example.com", []string{"Plan: nothing is deleted."}, ""},
		"a plan of nothing":           {nil, "plan", nil, "name an object, as in: deployment web"},
		"a plan of what is not there": {nil, "plan cm nobody", nil, `"nobody" not found`},
		"a plan of what nobody may delete": {func(w *town) {
			w.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}")
		}, "plan namespace kube-system", []string{"! namespaces/kube-system: the API server refuses to delete this namespace, whoever asks\n\nPlan: 1 is stuck.\n"}, ""},
		"a plan of an unknown kind":          {nil, "plan widgets x", nil, `the server doesn't have a resource type "widgets"`},
		"a plan in another output":           {nil, "plan cm boss -o xml", nil, `--output "xml": must be one of json, yaml`},
		"a plan of an unknown cascade":       {nil, "plan cm boss --cascade=sideways", nil, `--cascade "sideways": must be background, foreground or orphan`},
		"a tree":                             {nil, "tree cm leaf", []string{"boss", "▶", "twig"}, ""},
		"a tree as JSON":                     {nil, "tree cm leaf -o json", []string{`"kind": "Tree"`, `"unread": `}, ""},
		"a tree of two":                      {nil, "tree cm/leaf cm/twig", nil, "name one object: these are 2"},
		"why it is there":                    {nil, "why cm leaf", []string{"boss"}, ""},
		"why it does not go":                 {func(w *town) { w.put("held", "", terminating) }, "why cm held", []string{"example.com/hold"}, ""},
		"why, as JSON":                       {func(w *town) { w.put("held", "", terminating) }, "why cm held -o json", []string{`"kind": "Answer"`, `"deleting": true`}, ""},
		"why what is not there is gone":      {nil, "why cm nobody", nil, "and nothing is recorded of its deletion: the API server's audit log has each request"},
		"nothing is pending":                 {nil, "pending", []string{"Nothing is being deleted in the namespace shop (-A asks about the cluster).\n"}, ""},
		"nothing is pending anywhere":        {nil, "pending -A", []string{"Nothing is being deleted in the cluster.\n"}, ""},
		"no orphans":                         {nil, "orphans", []string{"No object in the namespace shop (-A asks about the cluster) names an owner that is gone or cannot be determined.\n"}, ""},
		"what is pending":                    {func(w *town) { w.put("held", "", terminating) }, "pending -o json", []string{`"kind": "PendingDeletions"`, `"name": "held"`}, ""},
		"what is pending, in the cluster":    {func(w *town) { w.put("held", "", terminating) }, "pending -A", []string{"held", "example.com/hold"}, ""},
		"pending objects":                    {nil, "pending cm", nil, "unknown command"},
		"what is pending, in another output": {nil, "pending -o wide", nil, `--output "wide": must be one of json, yaml`},
		"an orphan":                          {func(w *town) { w.put("lost", "never") }, "orphans", []string{"  configmaps/shop/lost: "}, ""},
		"an orphan, as JSON":                 {func(w *town) { w.put("lost", "never") }, "orphans -o json", []string{`"kind": "Orphans"`, `"name": "lost"`}, ""},
		"no history":                         {nil, "history", nil, ""},
		"the history of one as JSON":         {nil, "history cm boss -o json", []string{`"kind": "History"`, `"items": `}, ""},
		"the history of three":               {nil, "history cm boss leaf", nil, "name one object, as in: deployment web"},
		"the history of a kind":              {nil, "history cm", nil, "name one object, as in: deployment web"},
		"the history of an unknown kind":     {nil, "history widgets/x", nil, `the cluster serves no type "widgets"`},
		"policies, where there are none":     {nil, "policies -o json", []string{`"kind": "Policies"`}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			if c.put != nil {
				c.put(w)
			}
			s := w.run(strings.Fields(c.args)...)
			if c.err != "" {
				s.mustFail(t, c.err)
			} else if s.failed != nil {
				t.Fatal(s.failed)
			}
			for _, want := range c.out {
				if !strings.Contains(s.out, want) {
					t.Errorf("there is no %q in\n%s%s", want, s.out, s.err)
				}
			}
			if len(w.written) > 0 {
				t.Errorf("it has written: %q", w.written)
			}
		})
	}
}

// TestExitCodesOfAPlan: without the flag there are none.
func TestExitCodesOfAPlan(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*town)
		code   int
	}{
		"all goes":                 {func(*town) {}, 0},
		"something waits":          {func(w *town) { w.put("twig", "leaf", ", finalizers: [example.com/hold]") }, exitStuck},
		"a kind may not be listed": {func(w *town) { w.refuse("/secrets", 403, "Forbidden", "you may not") }, exitIncomplete},
		"a kind cannot be listed":  {func(w *town) { w.refuse("/secrets", 500, "InternalError", "etcd") }, exitIncomplete},
		"an owner that no list tells of keeps something": {func(w *town) {
			w.core = []metav1.APIResource{{Name: "tokens", SingularName: "token", Kind: "Token", Namespaced: true, Verbs: metav1.Verbs{"get", "create"}}}
			w.put("kept", "", ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}, {apiVersion: v1, kind: Token, name: t, uid: uid-t}]")
		}, exitIncomplete},
		"both: the first says more": {func(w *town) {
			w.put("twig", "leaf", ", finalizers: [example.com/hold]")
			w.refuse("/secrets", 403, "Forbidden", "no")
		}, exitStuck},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			c.change(w)
			if s := w.run("plan", "cm", "boss", "--exit-code"); s.code() != c.code || c.code > 1 && s.failed.Error() != fmt.Sprint("exit status ", c.code) {
				t.Errorf("%v, want exit %d\n%s", s.failed, c.code, s.out)
			}
			if s := w.run("plan", "cm", "boss"); s.code() != 0 {
				t.Errorf("without the flag: %v", s.failed)
			}
		})
	}
}

// TestWhatMayNotBeReadIsTold: at the end, on the other stream, so that what is printed can be read
// by programs; and what is asked about itself is an error.
func TestWhatMayNotBeReadIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		path, args string
		code       int    // of the API server
		err        string // of the command; empty: it answers
		says       string // on the other stream
	}{
		"a kind of many":          {"/secrets", "tree cm leaf -o json", 403, "", "incomplete: secrets could not be read: not now\n"},
		"a kind, of a plan":       {"/secrets", "plan cm boss", 403, "", ""},
		"a kind, of the pending":  {"/secrets", "pending", 500, "", "incomplete: secrets could not be read: not now\n"},
		"Events, of why":          {"/events", "why cm leaf", 403, "", "incomplete: events in the namespace shop could not be read: not now\n"},
		"the object":              {"/configmaps/boss", "plan cm boss", 403, "not now", ""},
		"its kind":                {"/configmaps", "plan cm boss", 403, "plan the delete of shop/configmaps boss: it is not among the objects that were listed: it is gone, or its kind cannot be listed", ""},
		"its kind, of a tree":     {"/configmaps", "tree cm boss", 500, "shop/configmaps boss: it is not among the objects that were listed", ""},
		"Events, of history":      {"/events", "history", 403, "not now", ""},
		"Events, of what is gone": {"/events", "why cm nobody", 403, "and Events, which may tell why, cannot be read: not now", ""},
		"the kinds":               {"/api/v1", "tree cm boss", 503, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newTown(t)
			w.refuse(c.path, c.code, "Refused", "not now")
			s := w.run(strings.Fields(c.args)...)
			switch {
			case name == "the kinds":
				if s.failed == nil {
					t.Errorf("it answers, and knows no kinds:\n%s", s.out)
				}
			case c.err != "":
				s.mustFail(t, c.err)
			case s.failed != nil:
				t.Error(s.failed)
			}
			if !strings.Contains(s.err, c.says) || strings.Contains(s.out, "incomplete: ") {
				t.Errorf("it says %q, and prints\n%s", s.err, s.out)
			}
			if strings.HasSuffix(c.args, "json") && !json.Valid([]byte(s.out)) {
				t.Errorf("that is no JSON:\n%s", s.out)
			}
		})
	}
}

// TestAnAPIServerThatIsNotThereIsSaidSo: with what to do about it, whatever is asked.
func TestAnAPIServerThatIsNotThereIsSaidSo(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, args := range []string{"plan cm boss", "held widgets", "tree cm boss", "why cm boss", "pending", "orphans", "policies", "history"} {
		s := weir(t, gone.URL, append(strings.Fields(args), "--cache-dir", t.TempDir())...)
		if s.failed == nil || !strings.Contains(s.failed.Error(), "connect") && !strings.Contains(s.failed.Error(), "refused") {
			t.Errorf("%s: %v", args, s.failed)
		}
		if args == "pending" || args == "policies" || args == "history" {
			s.mustFail(t, "the API server does not answer: ", "choose the cluster with --kubeconfig, --context or KUBECONFIG")
		}
	}
}

// TestOfMuchThatCouldNotBeReadSomeIsNamed: and how much more there is, unless all is asked for.
func TestOfMuchThatCouldNotBeReadSomeIsNamed(t *testing.T) {
	for _, c := range []struct {
		unread, lines int
		full          bool
		last          string
	}{
		{0, 0, false, ""}, {mostUnread, mostUnread, false, "kind-09"}, {mostUnread + 1, mostUnread, false, "incomplete: 2 more could not be read: --full names them"},
		{100, mostUnread, false, "incomplete: 91 more could not be read: --full names them"}, {100, 100, true, "kind-99"},
	} {
		w := insight.NewWorld("shop", nil)
		for i := range c.unread {
			w.NotListed(schema.GroupResource{Resource: fmt.Sprintf("kind-%02d", i)}, true, "you may not")
		}
		a := newAsking()
		a.full = c.full
		var out strings.Builder
		a.unread(&out, w)
		lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
		if n := strings.Count(out.String(), "\n"); n != c.lines || !strings.Contains(lines[len(lines)-1], c.last) {
			t.Errorf("of %d: %d lines, want %d, the last one %q", c.unread, n, c.lines, lines[len(lines)-1])
		}
	}
}
