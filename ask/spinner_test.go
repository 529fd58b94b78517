package ask

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/ask/snapshot"
)

// TestASpinnerSaysWhatIsListed: once it takes longer than a second, and is gone when it is read.
func TestASpinnerSaysWhatIsListed(t *testing.T) {
	for name, c := range map[string]struct {
		took time.Duration
		want string
	}{
		"short": {time.Second, ""},
		"long":  {1500 * time.Millisecond, "\r\x1b[K- listing pods (kind 2)\r\x1b[K\\ listing pods (kind 2)\r\x1b[K"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			var r snapshot.Reader
			stop := spinOn(t.Context(), &out, &r)
			r.Listing("secrets")
			r.Listing("pods")
			<-time.After(c.took)
			stop()
			if got := out.String(); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
}
