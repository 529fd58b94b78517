package controller

import (
	"testing"

	"k8s.io/client-go/rest"
)

// TestGraphIsComparedUnlessTheOptionSaysNever: nothing else tells a webhook that its graph has lost
// an event, and it says nothing of that.
func TestGraphIsComparedUnlessTheOptionSaysNever(t *testing.T) {
	for _, never := range []bool{false, true} {
		f, err := newFollowing(Options{Config: &rest.Config{Host: "https://weir.test"}, NeverCompare: never})
		if err != nil {
			t.Fatal(err)
		}
		if compares := f.options.CompareEvery > 0; compares == never {
			t.Errorf("never %t: compared every %s", never, f.options.CompareEvery)
		}
	}
}
