package insight

import (
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/policies/v1beta1"
)

// DrawHeld writes what is held until a person decides, and why.
func DrawHeld(out io.Writer, all []v1beta1.HeldCollection, now time.Time) error {
	var b strings.Builder
	for i := range all {
		name, status := words.Printable(all[i].Name), &all[i].Status
		held := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionHeld)
		if held == nil || status.Since == nil {
			fmt.Fprintf(&b, "%s: holds nothing: Weir has not written it\n", name)
			continue
		}
		fmt.Fprintf(&b, "%s: %s, since %s ago, %s\n  %s\n", name, words.Count(int(status.Objects), "object", "objects"),
			duration.HumanDuration(max(0, now.Sub(status.Since.Time))), words.Printable(held.Reason),
			words.Printable(held.Message))
	}
	if len(all) == 0 {
		b.WriteString("Nothing is held.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}
