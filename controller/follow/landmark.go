package follow

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// mostLandmarks is how many kinds are looked for one in.
const mostLandmarks = 4

// landmark is an object as it was written at a resourceVersion. A list at exactly that
// resourceVersion shows it, as it was then, or is refused because that is too long ago. In another
// history there is something else at that point: so it tells also when resourceVersions have caught
// up with what was seen, as they do soon where there was little to see. An API server that starts
// writes a hundred objects.
type landmark struct {
	gvr             schema.GroupVersionResource
	namespace, name string
	version         uint64
}

// landmarks are what was written last, of the kinds of which most was seen. Only of those that
// Kubernetes itself serves: others need not know how to list at a resourceVersion.
func landmarks(kinds []Followed) []landmark {
	var marks []landmark
	for _, k := range kinds {
		m := k.Feed.latest.Load()
		if m == nil || strings.Contains(k.GVR.Group, ".") && !strings.HasSuffix(k.GVR.Group, ".k8s.io") {
			continue
		}
		if version := VersionNumber(m.ResourceVersion); version != 0 {
			marks = append(marks, landmark{k.GVR, m.Namespace, m.Name, version})
		}
	}
	slices.SortFunc(marks, func(a, b landmark) int { return cmp.Compare(b.version, a.version) })
	return marks[:min(mostLandmarks, len(marks))]
}

// missing says why the landmark is not where it was; "" if it is, or if that cannot be told.
func (l landmark) missing(ctx context.Context, client metadata.Interface) (string, error) {
	list, err := client.Resource(l.gvr).Namespace(l.namespace).List(ctx, metav1.ListOptions{
		FieldSelector:   fields.OneTermEqualSelector(metav1.ObjectNameField, l.name).String(), // a Role may be called "a,"
		ResourceVersion: fmt.Sprint(l.version), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
	})
	switch {
	case contactLost(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return "", err
	case err != nil: // too long ago, or not come so far: others tell
		return "", nil
	case VersionNumber(list.ResourceVersion) != l.version: // it was not listed as asked
		return "", nil
	}
	for _, o := range list.Items {
		if VersionNumber(o.ResourceVersion) == l.version {
			return "", nil
		}
	}
	return fmt.Sprintf("%s was written at resourceVersion %d, and there is something else now", nsNameOf(l.namespace, l.name), l.version), nil
}

func nsNameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
