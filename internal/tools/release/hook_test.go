package release

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// helm template prints hooks, too: who applies them has not asked to uninstall anything. A helm
// uninstall must never be refused.
func TestAHookWorksOnlyWhereHelmRunsIt(t *testing.T) {
	const by = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: weir, namespace: weir-system, annotations: {meta.helm.sh/release-name: %}}}"
	for name, c := range map[string]struct {
		release string
		of      string // the live Deployment's annotation; none: it is not there
		refuse  *apitest.Reply
		notHelm bool
		want    string // of the error; none: it goes on
	}{
		"helm uninstall":                       {"weir", "weir", nil, false, ""},
		"helm uninstall, again":                {"weir", "", nil, false, ""},
		"kubectl apply":                        {"weir", "''", nil, true, `Deployment weir-system/weir is not of Helm release weir (its annotation meta.helm.sh/release-name is "")`},
		"another release":                      {"weir", "other", nil, true, `its annotation meta.helm.sh/release-name is "other"`},
		"rendered without a cluster":           {NoHelmRelease, "''", nil, true, "rendered without a cluster"},
		"the same, over what Helm has applied": {NoHelmRelease, "weir", nil, true, "rendered without a cluster"},
		"it cannot be read":                    {"weir", "weir", apitest.Refuse(403, "Forbidden", "not you"), false, "find out whether Deployment weir-system/weir is of Helm release weir: not you"},
	} {
		api := newAPI(func(r apitest.Request) *apitest.Reply {
			if strings.HasSuffix(r.Path, "/deployments/weir") {
				return c.refuse
			}
			return nil
		})
		if c.of != "" {
			api.Put("deployments", strings.ReplaceAll(by, "%", c.of))
		}
		err := RunByHelm(t.Context(), api.Config(), c.release, types.NamespacedName{Namespace: "weir-system", Name: "weir"})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || errors.Is(err, ErrNotHelm) != c.notHelm {
			t.Errorf("%s: %v", name, err)
		}
		if c.notHelm && (!strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "--no-hooks") || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%s: it does not say in one line what to do: %v", name, err)
		}
		if changed := writes(api); len(changed) > 0 {
			t.Errorf("%s: it writes: %v", name, changed)
		}
	}
}
