package doctor

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Admission is an admission policy or a webhook, not Weir's, that matches deletes or updates. Its
// conditions name the cluster's own collectors, but not Weir's controller.
type Admission struct {
	Name  string // with its kind
	Names string // the collector that it names
}

// builtIn matches the names by which conditions let the cluster's own collectors through: their
// users, all users of kube-system, or the one user of a kube-controller-manager.
var builtIn = regexp.MustCompile(
	`(system:serviceaccount:kube-system:)?(generic-garbage-collector|namespace-controller)\b` +
		`|system:serviceaccounts?:kube-system:?([^\w:-]|$)|system:kube-controller-manager`)

// LetsThrough returns the name of the cluster's own collectors in conditions; "" if there is none,
// or if the conditions also name user, Weir's controller.
func LetsThrough(conditions []string, user string) string {
	all := strings.Join(slices.Sorted(slices.Values(conditions)), "\n")
	namespace, _, _ := strings.Cut(strings.TrimPrefix(user, "system:serviceaccount:"), ":")
	weirs := regexp.MustCompile(regexp.QuoteMeta(user) +
		`|system:serviceaccounts?:` + regexp.QuoteMeta(namespace) + `:?([^\w:-]|$)`)
	if weirs.MatchString(all) {
		return ""
	}
	return strings.TrimRight(builtIn.FindString(all), `\"'.*)`)
}

// admission reports what may refuse to Weir what it lets the cluster's own collectors do.
func (f *Facts) admission() (out []Finding) {
	if f.Mode == Shadow {
		return nil
	}
	if why := f.Errors["admission"]; why != "" {
		return []Finding{{About: "admission", Grade: Unknown,
			Says: "cannot tell whether admission policies let only the cluster's own collectors through: " + why}}
	}
	for _, a := range f.Admission {
		out = append(out, Finding{About: a.Name, Grade: Warning,
			Says: fmt.Sprintf("its conditions name %s and not Weir's controller: it may refuse to Weir what it lets the "+
				"cluster's own collectors do, and then objects stay", a.Names),
			Do: "let the user " + f.User + " through as well: docs/adoption.md says how"})
	}
	return out
}
