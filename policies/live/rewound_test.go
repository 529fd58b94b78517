package live

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

// TestPoliciesAreThoseOfTheBackupAfterARestore: a watch that is resumed waits for a resourceVersion
// that is still to come, and shows no change until then.
func TestPoliciesAreThoseOfTheBackupAfterARestore(t *testing.T) {
	team := func(name string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {team: %s}}}", name)
	}
	for name, told := range map[string]bool{"who follows the graph tells": true, "it finds out by itself": false} {
		t.Run(name, func(t *testing.T) {
			inFixture(t, "", func(s *apitest.Server) {
				s.Put("deletionpolicies", policy("stays", "0"))
				s.Put("namespaces", team("a"))
			}, func(b *fixture) {
				b.settle()
				restore := b.api.Snapshot()
				b.api.Put("deletionpolicies", policy("later", "0"))
				for range 10 {
					b.api.Put("namespaces", team("b"))
				}
				b.settle()
				b.wantInForce("before the restore", "later", "stays")
				b.api.Down()
				restore(0)
				b.api.Up()
				b.api.Put("deletionpolicies", policy("comes", "0"))
				if told {
					b.state.Rewound("restored")
					if err := b.state.Current(); err == nil ||
						!strings.HasPrefix(err.Error(), "the API server's history went back: waiting for the first list of ") {
						b.Errorf("current: %v", err)
					}
					b.wantInForce("until all is listed again", "later", "stays")
					<-time.After(2 * time.Second)
				} else {
					<-time.After(2 * probeEvery)
				}
				b.settle()
				b.wantInForce("after the restore", "comes", "stays")
				if got := fmt.Sprint(b.state.Namespace("shop")["metadata"]); !strings.Contains(got, "team:a") {
					b.Errorf("the namespace is still %s", got)
				}
				if err := b.state.Current(); err != nil {
					b.Errorf("not current after all: %v", err)
				}
				b.api.Put("deletionpolicies", policy("next", "0"))
				b.settle()
				b.wantInForce("and goes on", "comes", "next", "stays")
			})
		})
	}
}

// TestAHistoryThatGoesOnHasNothingListedAgain: what is in force is compiled once, however long it
// is looked.
func TestAHistoryThatGoesOnHasNothingListedAgain(t *testing.T) {
	inFixture(t, "", func(s *apitest.Server) { s.Put("deletionpolicies", policy("one", "0")) }, func(b *fixture) {
		b.settle()
		b.api.Down()
		<-time.After(2 * probeEvery)
		b.api.Up()
		<-time.After(20 * probeEvery)
		if n := strings.Count(b.log.String(), "policies are in force"); n != 1 ||
			strings.Contains(b.log.String(), "went back") {
			b.Errorf("compiled %d times:\n%s", n, b.log)
		}
	})
}
