package doctor

import "testing"

// TestConditionsThatLetOnlyTheBuiltInCollectorsThrough: by which names they do, and that whoever
// names Weir's controller as well is not told of.
func TestConditionsThatLetOnlyTheBuiltInCollectorsThrough(t *testing.T) {
	const weir = "system:serviceaccount:weir-system:weir-controller"
	for condition, want := range map[string]string{
		`request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`:                                           "system:serviceaccount:kube-system:",
		`request.userInfo.username.matches('^system:serviceaccount:kube-system:.*')`:                                           "system:serviceaccount:kube-system:",
		`request.userInfo.username != "system:serviceaccount:kube-system:generic-garbage-collector"`:                           "system:serviceaccount:kube-system:generic-garbage-collector",
		`request.userInfo.username.endsWith(':namespace-controller')`:                                                          "namespace-controller",
		`"system:serviceaccounts:kube-system" in request.userInfo.groups`:                                                      "system:serviceaccounts:kube-system",
		`request.userInfo.username == "system:kube-controller-manager"`:                                                        "system:kube-controller-manager",
		`request.userInfo.username == "system:serviceaccount:kube-system:a-cni"`:                                               "",
		`object.metadata.namespace != "kube-system"`:                                                                           "",
		`request.userInfo.username in ["system:serviceaccount:kube-system:namespace-controller", "` + weir + `"]`:              "",
		`["system:serviceaccounts:kube-system", "system:serviceaccounts:weir-system"].exists(g, g in request.userInfo.groups)`: "",
		`["system:serviceaccounts:kube-system", "system:serviceaccounts:weir-system-2"].exists(g, g in x)`:                     "system:serviceaccounts:kube-system",
	} {
		if got := LetsThrough([]string{"true", condition}, weir); got != want {
			t.Errorf("%s: %q, want %q", condition, got, want)
		}
	}
	const prefix = `request.userInfo.username.startsWith("system:serviceaccount:kube-system:")`
	if got := LetsThrough([]string{prefix}, "system:serviceaccount:kube-system:weir-controller"); got != "" {
		t.Errorf("Weir in kube-system is let through as well, and it is said: %q", got)
	}
}
