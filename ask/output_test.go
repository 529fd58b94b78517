package ask

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newMarket is a town in which each kind of outcome is: what goes, what is kept, what waits, and
// what lost its owner. Deletions are in times to come, and 0 s old.
func newMarket(t *testing.T) *town {
	w := newTown(t)
	const ending = ", deletionTimestamp: '2999-01-01T00:00:00Z', finalizers: [example.com/hold]"
	w.put("held", "", ending)
	w.put("under", "held")
	w.put("wait", "leaf", ", finalizers: [example.com/hold]")
	w.put("lost", "never")
	w.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: both, namespace: shop, ownerReferences: [
		{apiVersion: v1, kind: ConfigMap, name: boss, uid: uid-boss}, {apiVersion: v1, kind: ConfigMap, name: held, uid: uid-held}]}}`)
	return w
}

// marketText are whole answers of commands in text, as a user sees them.
var marketText = map[string]string{
	"plan cm boss": `
- configmaps/boss
  ~ configmaps/both: kept: owned by ConfigMap shop/held; not any more by ConfigMap shop/boss
  - configmaps/leaf
    ! configmaps/wait: waits until another component removes example.com/hold
    - configmaps/twig

Plan: 4 objects are deleted in 4 steps, 1 of them waits for finalizers that others remove, 1 is kept and loses a reference.
`,
	"plan cm boss --full": `
- configmaps/boss: step 1; background
  ~ configmaps/both: kept: owned by ConfigMap shop/held; not any more by ConfigMap shop/boss
  - configmaps/leaf: step 2; background
    ! configmaps/wait: waits until another component removes example.com/hold; step 4; background
    - configmaps/twig: step 3; background

Plan: 4 objects are deleted in 4 steps, 1 of them waits for finalizers that others remove, 1 is kept and loses a reference.
`,
	"plan cm leaf --cascade=foreground --full": `
- configmaps/leaf: step 1; foreground
  ! configmaps/wait: waits until another component removes example.com/hold; step 2; background
  - configmaps/twig: step 1; background

Plan: 3 objects are deleted in 2 steps, 1 of them waits for finalizers that others remove.
`,
	"plan cm boss --cascade=orphan": `
- configmaps/boss
  ~ configmaps/both, leaf: kept: orphaned by ConfigMap shop/boss

Plan: 1 object is deleted in 2 steps, 2 are kept and lose a reference.
`,
	"plan cm boss held": `
! configmaps/held: waits until another component removes example.com/hold; is being deleted already
  - configmaps/under: after that
- configmaps/boss
  - configmaps/leaf
    ! configmaps/wait: waits until another component removes example.com/hold
    - configmaps/twig
  - configmaps/both: after that

Plan: 7 objects are deleted in 5 steps, 2 of them wait for finalizers that others remove, 2 are deleted only after that.
`,
	"tree cm leaf": `
· configmaps/boss
  ▶ configmaps/leaf
    · configmaps/twig
    · configmaps/wait: finalizers example.com/hold
`,
	"tree cm both": `
· configmaps/boss
  ▶ configmaps/both
! configmaps/held: terminating, finalizers example.com/hold
  ▶ configmaps/both: see above
`,
	"tree cm lost":                "▶ configmaps/lost: its owner ConfigMap never is gone\n",
	"orphans":                     "A garbage collector deletes these:\n  configmaps/shop/lost: owner is gone: ConfigMap shop/never\n",
	"policies --weir-namespace=x": "There is no policy.\n",
	"plan cm -l colour=none":      "Plan: nothing is deleted.\n",
	"pending": `
1 waits for the component behind the finalizer example.com/hold:
  configmaps/shop/held for 0s: the finalizer example.com/hold holds it
`,
	"why cm held": `
configmaps/shop/held is being deleted, for 0s.

1. The finalizer example.com/hold holds it.
   Who has to act: the component behind the finalizer example.com/hold.

Whether a webhook refuses what has to succeed first is not known. To try that, without effect: kubectl patch --dry-run=server configmaps held -n shop --type=merge -p '{"metadata":{"finalizers":null}}'
`,
	"why cm leaf": `
configmaps/shop/leaf is not being deleted.

1. It stays as long as its owner exists: owned by ConfigMap shop/boss.
   To see more: kubectl weir tree -n shop configmaps leaf
`,
	"why cm lost": `
configmaps/shop/lost is not being deleted.

1. Its owners are gone, so it will be deleted: owner is gone: ConfigMap shop/never.
   Who has to act: the garbage collector.
   To see more: kubectl weir tree -n shop configmaps lost

Whether a webhook refuses what has to succeed first is not known. To try that, without effect: kubectl delete --dry-run=server configmaps lost -n shop
`,
	"history": `
No cascade is recorded. Weir's controller records one as an Event where it collects (--mode replace), and Events are kept for an hour
where the API server's --event-ttl does not say otherwise.
`,
}

func TestAnswersInText(t *testing.T) {
	w := newMarket(t)
	for args, want := range marketText {
		t.Run(args, func(t *testing.T) {
			s := w.run(strings.Fields(args)...)
			if s.failed != nil {
				t.Fatal(s.failed)
			}
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), cluster.ReplaceAllString(s.out, "")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// cluster are the flags of a command that is printed, by which it is of the same cluster.
var cluster = regexp.MustCompile(` --kubeconfig=\S*`)

// marketYAML are whole answers for programs. Fields of these are what others rest on: one that is
// renamed breaks them.
var marketYAML = map[string]string{
	"plan cm twig wait": `
apiVersion: insight.weir.dev/v1beta1
held: ""
items:
- kind: configmaps
  name: twig
  namespace: shop
  outcome: delete
  propagation: Background
  step: 1
  uid: uid-twig
  why: asked for
- finalizers:
  - example.com/hold
  kind: configmaps
  name: wait
  namespace: shop
  outcome: delete
  propagation: Background
  stage: 1
  step: 2
  uid: uid-wait
  why: asked for
kind: Plan
propagation: Background
roots:
- kind: configmaps
  name: twig
  namespace: shop
  uid: uid-twig
- kind: configmaps
  name: wait
  namespace: shop
  uid: uid-wait
summary: 'Plan: 2 objects are deleted in 2 steps, 1 of them waits for finalizers that
  others remove.'
totals:
  anew: 0
  braked: 0
  contested: 0
  deleted: 2
  doubtful: 0
  held: 1
  later: 0
  refused: 0
  released: 0
  steps: 2
  stuck: 0
  unknown: 0
unread: []
verdicts: null
`,
	"tree cm leaf": `
apiVersion: insight.weir.dev/v1beta1
kind: Tree
roots:
- dependents:
  - asked: true
    dependents:
    - kind: configmaps
      name: twig
      namespace: shop
      uid: uid-twig
    - finalizers:
      - example.com/hold
      kind: configmaps
      name: wait
      namespace: shop
      uid: uid-wait
    kind: configmaps
    name: leaf
    namespace: shop
    uid: uid-leaf
  kind: configmaps
  name: boss
  namespace: shop
  uid: uid-boss
unread: []
`,
	"why cm held": `
apiVersion: insight.weir.dev/v1beta1
causes:
- actor: the component behind the finalizer example.com/hold
  what: the finalizer example.com/hold holds it
deleting: true
kind: Answer
object:
  kind: configmaps
  name: held
  namespace: shop
  uid: uid-held
state: is being deleted, for 0s
unread: []
`,
	"pending": `
apiVersion: insight.weir.dev/v1beta1
groups:
- actor: the component behind the finalizer example.com/hold
  items:
  - kind: configmaps
    name: held
    namespace: shop
    since: 0s
    uid: uid-held
    waits: the finalizer example.com/hold holds it
kind: PendingDeletions
unread: []
`,
	"orphans": `
apiVersion: insight.weir.dev/v1beta1
items:
- fate: delete
  kind: configmaps
  name: lost
  namespace: shop
  uid: uid-lost
  why: 'owner is gone: ConfigMap shop/never'
kind: Orphans
unread: []
`,
	"history":  "apiVersion: insight.weir.dev/v1beta1\nitems: []\nkind: History\n",
	"policies": "apiVersion: insight.weir.dev/v1beta1\nitems: []\nkind: Policies\n",
}

// TestAnswersForPrograms: as YAML, and as JSON, which says the same.
func TestAnswersForPrograms(t *testing.T) {
	w := newMarket(t)
	for args, want := range marketYAML {
		t.Run(args, func(t *testing.T) {
			asYAML, asJSON := w.run(append(strings.Fields(args), "-o", "yaml")...), w.run(append(strings.Fields(args), "-o", "json")...)
			if asYAML.failed != nil || asJSON.failed != nil {
				t.Fatal(asYAML.failed, asJSON.failed)
			}
			if diff := cmp.Diff(strings.TrimPrefix(want, "\n"), asYAML.out); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(parsed(t, asYAML.out), parsed(t, asJSON.out)); diff != "" {
				t.Errorf("YAML and JSON (-yaml +json):\n%s", diff)
			}
			if !strings.HasPrefix(asJSON.out, "{\n  \"") || !strings.HasSuffix(asJSON.out, "\n}\n") {
				t.Errorf("JSON is to be indented, and end with a line:\n%s", asJSON.out)
			}
		})
	}
}

// TestTextThatOthersChoseIsShownAsItIs: names in any script stay readable, and what a terminal
// would obey is written out, in each output.
func TestTextThatOthersChoseIsShownAsItIs(t *testing.T) {
	const escape = `\u001b[2J`
	w := newTown(t)
	w.groups = map[string][]metav1.APIResource{"rbac.authorization.k8s.io/v1": {
		{Name: "clusterroles", SingularName: "clusterrole", Kind: "ClusterRole", Verbs: metav1.Verbs{"list", "watch", "get", "delete", "patch"}},
	}}
	put := func(name, metadata string) {
		w.api.Put("clusterroles", `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "`+name+`"`+metadata+`}}`)
	}
	put("роль", "")
	put("役割", `, ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: роль, uid: uid-роль}]`)
	put("a"+escape+`\nb`, `, ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: роль, uid: uid-роль}]`)
	put("lost", `, ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: "x`+escape+`", uid: never}]`)
	for args, want := range map[string]string{
		"plan clusterroles роль":           `a\x1b[2J\nb`,
		"plan clusterroles роль -o json":   `"name": "a\u001b[2J\nb"`,
		"plan clusterroles роль -o yaml":   `name: "a\e[2J\nb"`,
		"tree clusterroles роль":           "▶ clusterroles.rbac.authorization.k8s.io/роль",
		"why clusterroles 役割":              "owned by ClusterRole роль",
		"orphans -A":                       `owner is gone: ClusterRole x\x1b[2J`,
		"plan clusterroles роль --full":    `- clusterroles.rbac.authorization.k8s.io/役割`,
		"tree clusterroles lost":           `its owner ClusterRole x\x1b[2J is gone`,
		"history clusterroles роль -ojson": `"items": []`,
	} {
		t.Run(args, func(t *testing.T) {
			s := w.run(strings.Fields(args)...)
			if s.failed != nil {
				t.Fatal(s.failed)
			}
			if !strings.Contains(s.out, want) {
				t.Errorf("there is no %s in\n%q", want, s.out)
			}
			if strings.ContainsRune(s.out+s.err, '\x1b') {
				t.Errorf("a terminal would obey\n%q\n%q", s.out, s.err)
			}
		})
	}
}
