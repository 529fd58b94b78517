package release

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// Ten thousand objects that a webhook refuses are one cause: as many are named as can be read, and
// all are counted. That the kind could not be read to its end is another, and is not lost among
// them.
func TestManyFailuresAreCountedAndSomeAreNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = releaseFailures + 7
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Method == "PATCH":
				return apitest.Refuse(403, "Forbidden", "refused")
			case r.Method == "GET" && strings.HasSuffix(r.Path, "/configmaps"):
				if strings.Contains(r.Query, "continue=") {
					<-time.After(time.Second) // until all have been refused
					return apitest.Refuse(403, "Forbidden", "not the rest")
				}
				items := make([]metav1.PartialObjectMetadata, most)
				for i := range items {
					items[i] = metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}, ObjectMeta: metav1.ObjectMeta{
						Namespace: "shop", Name: fmt.Sprint(i), UID: fixture.UIDOf(fmt.Sprint(i)), Finalizers: []string{v1beta1.Finalizer}}}
				}
				return &apitest.Reply{Code: 200, Body: metav1.PartialObjectMetadataList{
					TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadataList"}, ListMeta: metav1.ListMeta{Continue: "more"}, Items: items}}
			}
			return nil
		})
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		if err != nil || got.Failed != most {
			t.Fatalf("%d failed, %v", got.Failed, err)
		}
		if n := len(got.Failures); n != releaseFailures+2 || !slices.Contains(got.Failures, "and 7 more objects") {
			t.Errorf("%d lines, the first is %q", n, got.Failures[0])
		}
		if !slices.ContainsFunc(got.Failures, func(f string) bool { return strings.Contains(f, "not the rest") }) {
			t.Error("nothing says that configmaps were not read to the end")
		}
	})
}

// Whoever administers a namespace may write the annotation on a Role that grants more than Weir
// has, and the API server lets Weir change nothing but finalizers there. Such a Role must not keep
// Weir from being uninstalled.
func TestRolesKeepNoReleaseFromItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const rbac = "rbac.authorization.k8s.io"
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			switch {
			case r.Path == "/apis":
				v := metav1.GroupVersionForDiscovery{GroupVersion: rbac + "/v1", Version: "v1"}
				return &apitest.Reply{Code: 200, Body: metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
					Groups: []metav1.APIGroup{{Name: rbac, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}}}
			case r.Path == "/apis/"+rbac+"/v1":
				return &apitest.Reply{Code: 200, Body: metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: rbac + "/v1",
					APIResources: []metav1.APIResource{{Name: "roles", Kind: "Role", Namespaced: true, Verbs: metav1.Verbs{"get", "list", "watch", "delete", "patch"}}}}}
			case r.Method == "PATCH" && strings.Contains(r.Body, "annotations"):
				return apitest.Refuse(403, "Forbidden", "user \"weir\" is attempting to grant RBAC permissions not currently held")
			}
			return nil
		})
		for name, more := range map[string]string{"marked": "", "held": ", finalizers: [" + v1beta1.Finalizer + "]"} {
			api.Put("roles", fmt.Sprintf("{apiVersion: %s/v1, kind: Role, metadata: {name: %s, namespace: shop, annotations: {%s: x}%s}}", rbac, name, v1beta1.ArmedAtAnnotation, more))
		}
		got, err := (&Release{Config: api.Config()}).Run(t.Context())
		if diff := cmp.Diff(Released{Kinds: 3, Looked: 3, Seen: 2, Released: 1}, got); err != nil || diff != "" {
			t.Errorf("%v (-want +got):\n%s", err, diff)
		}
		if left := finalizersOf(api, "roles."+rbac+"/shop/held"); left != nil {
			t.Errorf("the Role keeps %v", left)
		}
	})
}
