package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// kept is a policy that wants ConfigMaps armed that are kept, and Secrets too.
const kept = `{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: kept}, spec: {match: {resources: [{apiGroups: ["", apps], resources: [configmaps, secrets, deployments]}], objectSelector: {matchLabels: {kept: "yes"}}}, propagation: {default: Orphan}}}`

// Whoever reaches the port can send reviews. What they say of an object is believed only as far as
// the API server confirms it: whatever is forged, nothing is written but what an honest review of
// the same object would have written.
func TestForgedReviewsWriteNothing(t *testing.T) {
	const honest = `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: mallory},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, resourceVersion: "3", labels: {kept: "yes"}}}}`
	up := "../../../../../api/v1/namespaces/victim/configmaps/precious"
	for name, forge := range map[string]*strings.Replacer{
		"the object's name leads elsewhere": strings.NewReplacer("metadata: {name: one",
			`metadata: {finalizers: [evil.example/never], name: "`+up+`"`),
		"that of a collection": strings.NewReplacer("name: one, userInfo", "userInfo",
			"metadata: {name: one", `metadata: {finalizers: [evil.example/never], name: "`+up+`"`),
		"the request's name leads elsewhere": strings.NewReplacer("name: one", `name: "`+up+`"`),
		"the object's namespace leads elsewhere": strings.NewReplacer("namespace: shop, uid",
			`namespace: "../../v1/namespaces/victim", uid`),
		"the request's namespace leads elsewhere": strings.NewReplacer("namespace: shop",
			`namespace: "../../v1/namespaces/victim"`),
		"the resource leads elsewhere": strings.NewReplacer("resource: configmaps",
			`resource: "configmaps/../secrets"`),
		"the version leads elsewhere": strings.NewReplacer("{version: v1, resource",
			`{version: "v1/namespaces/victim", resource`),
		"the group leads elsewhere": strings.NewReplacer("{version: v1, resource",
			`{group: "apps/../..", version: v1, resource`),
		"dots":                       strings.NewReplacer("name: one", "name: .."),
		"percent signs":              strings.NewReplacer("name: one", `name: "..%2f..%2fone"`),
		"no uid":                     strings.NewReplacer("uid: uid-one, ", ""),
		"an empty uid":               strings.NewReplacer("uid: uid-one", `uid: ""`),
		"an uid of another type":     strings.NewReplacer("uid: uid-one", `uid: [uid-one]`),
		"the uid of another object":  strings.NewReplacer("uid: uid-one", "uid: uid-plain"),
		"the name of another object": strings.NewReplacer("metadata: {name: one", "metadata: {name: plain"),
		"the object is another than the request's": strings.NewReplacer("metadata: {name: one", "metadata: {name: other",
			"uid-one", "uid-other"),
		"the namespace is another than the request": strings.NewReplacer("namespace: shop, uid", "namespace: victim, uid"),
		"the object is in no namespace":             strings.NewReplacer("namespace: shop, uid", "uid"),
		"another resource":                          strings.NewReplacer("resource: configmaps", "resource: secrets"),
		"labels that the object has not":            strings.NewReplacer("one", "plain"),
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				b.policies(kept)
				b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}, finalizers: [a]}}`)
				b.api.Put("configmaps",
					`{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: shop, labels: {kept: "yes"}}}`)
				b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: plain, namespace: shop}}`)
				b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: precious, namespace: victim}}`)
				b.api.Put("secrets", `{apiVersion: v1, kind: Secret, metadata: {name: one, namespace: shop}}`)
				b.asked()
				code, body := b.ask("delete", forge.Replace(honest))
				for _, r := range b.asked() {
					if !strings.HasPrefix(r, "GET ") {
						b.Errorf("answered %d %s and asked for\n%s", code, body, r)
					}
				}
			})
		})
	}
}

// Finalizers, annotations and labels are those of the object, and the policies are asked once more
// about it as it is.
func TestWhatIsWrittenIsWhatWasRead(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(kept)
		b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}, finalizers: [a]}}`)
		code, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: mallory},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}, finalizers: [evil.example/never]}}}`)
		if code != 200 || !strings.Contains(string(body), `"code":429`) {
			b.Errorf("%d %s", code, body)
		}
		meta, _ := b.api.Get("configmaps/shop/one")["metadata"].(map[string]any)
		if got := fmt.Sprint(meta["finalizers"]); got != "[a weir.dev/propagation]" {
			b.Errorf("finalizers %s", got)
		}
	})
}

// An object that changes between the read and the patch is read, and judged, again.
func TestObjectThatChangesMeanwhileIsJudgedAgain(t *testing.T) {
	withFixture(t, func(b *fixture) {
		b.policies(kept)
		b.api.Put("configmaps",
			`{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, labels: {kept: "yes"}}}`)
		patches := 0
		b.api.Intercept(func(r apitest.Request) *apitest.Reply {
			if r.Method == "PATCH" {
				if patches++; patches == 1 {
					b.api.Put("configmaps", `{apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop}}`)
				}
			}
			return nil
		})
		code, body := b.ask("delete", `{operation: DELETE, resource: {version: v1, resource: configmaps}, kind: {version: v1, kind: ConfigMap}, namespace: shop, name: one, userInfo: {username: alice},
  oldObject: {apiVersion: v1, kind: ConfigMap, metadata: {name: one, namespace: shop, uid: uid-one, labels: {kept: "yes"}}}}`)
		if code != 200 || patches != 1 {
			b.Errorf("%d %s after %d patches, want 1", code, body, patches)
		}
		if meta, _ := b.api.Get("configmaps/shop/one")["metadata"].(map[string]any); meta["finalizers"] != nil {
			b.Errorf("armed though no policy is about it any more: %v", meta)
		}
	})
}

// What a namespace holds, and how many custom resources there are, is told only of those that are
// there, to a review that is about them.
func TestForgedReviewsLearnNothing(t *testing.T) {
	const (
		namespace = `{operation: DELETE, resource: {version: v1, resource: namespaces}, kind: {version: v1, kind: Namespace}, namespace: shop, name: shop, userInfo: {username: mallory},
  oldObject: {apiVersion: v1, kind: Namespace, metadata: {name: shop, uid: uid-shop}}}`
		definition = `{operation: DELETE, resource: {group: apiextensions.k8s.io, version: v1, resource: customresourcedefinitions}, kind: {group: apiextensions.k8s.io, version: v1, kind: CustomResourceDefinition}, name: plans.example.com, userInfo: {username: mallory},
  oldObject: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: plans.example.com, uid: uid-plans.example.com}, spec: {group: example.com, names: {plural: plans}}}}`
	)
	for name, c := range map[string]struct {
		review    string
		forge     *strings.Replacer
		discloses string // empty: nothing
	}{
		"an honest one about a namespace":     {namespace, strings.NewReplacer(), "7 secrets (bank-password"},
		"a namespace by another uid":          {namespace, strings.NewReplacer("uid-shop", "uid-guessed"), ""},
		"a namespace without uid":             {namespace, strings.NewReplacer(", uid: uid-shop", ""), ""},
		"a namespace that is not there":       {namespace, strings.NewReplacer("shop", "none"), ""},
		"one namespace by the uid of another": {namespace, strings.NewReplacer("name: shop", "name: bank"), ""},
		"the object of another namespace": {namespace,
			strings.NewReplacer("namespace: shop, name: shop", "namespace: bank, name: bank"), ""},
		"an honest one about a definition": {definition, strings.NewReplacer(), "9 plans.example.com (secret-plan"},
		"a definition by another uid":      {definition, strings.NewReplacer("uid-plans", "uid-guessed"), ""},
		"a definition without uid":         {definition, strings.NewReplacer(", uid: uid-plans.example.com", ""), ""},
		"a definition that is not there":   {definition, strings.NewReplacer("plans", "none"), ""},
		"a definition that says it is another": {definition, strings.NewReplacer("plural: plans", "plural: accounts"),
			"9 plans.example.com (secret-plan"},
		"one definition by the uid of another": {definition, strings.NewReplacer("name: plans", "name: accounts"), ""},
		"a name that leads to another resource": {definition,
			strings.NewReplacer("name: plans.example.com", "name: ../../../../api/v1/namespaces/shop"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			withFixture(t, func(b *fixture) {
				b.grant("mallory list secrets", "mallory list plans")
				b.policies(`{apiVersion: weir.dev/v1beta1, kind: DeletionPolicy, metadata: {name: guarded}, spec: {match: {resources: [{apiGroups: ["", apiextensions.k8s.io], resources: [namespaces, customresourcedefinitions]}]}, protection: {maxDependents: 0}, failurePolicy: Fail}}`)
				b.api.Put("namespaces", "{apiVersion: v1, kind: Namespace, metadata: {name: bank}}")
				for _, plural := range []string{"plans", "accounts"} {
					b.api.Put("customresourcedefinitions",
						fmt.Sprintf(
							"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %[1]s.example.com}, "+
								"spec: {group: example.com, names: {plural: %[1]s}}}", plural))
				}
				code, body := b.ask("delete", c.forge.Replace(c.review))
				told := strings.Contains(string(body), "secret") || strings.ContainsAny(string(body), "79")
				if told != (c.discloses != "") || !strings.Contains(string(body), c.discloses) {
					b.Errorf("%d %s", code, body)
				}
			})
		})
	}
}
