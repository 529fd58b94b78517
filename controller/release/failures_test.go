package release

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/controller/fixture"
	"github.com/weir-dev/weir/policies/apitest"
	"github.com/weir-dev/weir/policies/v1alpha1"
)

// Ten thousand objects that a webhook refuses are one cause: as many are named as can be read, and all are counted. That the kind could not
// be read to its end is another, and is not lost among them.
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
						Namespace: "shop", Name: fmt.Sprint(i), UID: fixture.UIDOf(fmt.Sprint(i)), Finalizers: []string{v1alpha1.Finalizer}}}
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
		if n := len(got.Failures); n != releaseFailures+2 || !slices.Contains(got.Failures, "and 7 more configmaps") {
			t.Errorf("%d lines, the first is %q", n, got.Failures[0])
		}
		if !slices.ContainsFunc(got.Failures, func(f string) bool { return strings.Contains(f, "not the rest") }) {
			t.Error("nothing says that configmaps were not read to the end")
		}
	})
}
