package cel

import "testing"

// Whoever writes a policy is told how many objects it is about, and so of nothing by which a Secret
// could be read.
func TestWhatIsCountedTellsNothingOfObjects(t *testing.T) {
	for expression, want := range map[string]bool{
		"oldObject.metadata.labels.tier == 'x'":                                                      true,
		"oldObject.metadata.annotations['keep'] == 'yes'":                                            true,
		"oldObject.metadata.?annotations[?'keep'].orValue('') == 'yes'":                              true,
		"oldObject.metadata.annotations.?keep.orValue('') == 'yes'":                                  true,
		"has(oldObject.metadata.annotations) && 'keep' in oldObject.metadata.annotations":            true,
		"has(oldObject.metadata.annotations.keep)":                                                   true,
		"oldObject.metadata.labels.all(k, k != 'a')":                                                 true,
		"oldObject.data.password.startsWith('a')":                                                    false,
		"oldObject.metadata.annotations['kubectl.kubernetes.io/last-applied-configuration'] != ''":   false,
		"oldObject.metadata.annotations[?'kubectl.kubernetes.io/last-applied-configuration'] == 'x'": false,
		"oldObject.metadata.annotations['kubectl.kubernetes.io/last-' + 'applied'] == 'x'":           false,
		"oldObject.metadata.annotations[oldObject.metadata.labels.a] == 'x'":                         false,
		"oldObject.metadata.annotations.all(k, v, v != 'x')":                                         false,
		"'keep' in oldObject.metadata.annotations && string(oldObject.metadata.annotations) == ''":   false,
		"[oldObject.metadata.annotations].exists(a, a['keep'] == 'x')":                               false,
		"oldObject.metadata.managedFields.size() > 1":                                                false,
	} {
		if got := metadataOnly(expression) && countable(expression); got != want {
			t.Errorf("%s: countable: %t", expression, got)
		}
	}
}
