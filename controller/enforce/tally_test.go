package enforce

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/weir-dev/weir/internal/testkit/apitest"
	"github.com/weir-dev/weir/internal/testkit/fixture"
	"github.com/weir-dev/weir/policies/live"
)

// A list that grows too old goes on where it was, or begins again where the API does not offer
// that: nothing is counted twice.
func TestBackFillCountsNothingTwice(t *testing.T) {
	const n = 1200
	for offered, with := range map[bool]string{true: kept + withFinalizer, false: kept} {
		t.Run(fmt.Sprint("the API says where it goes on: ", offered), func(t *testing.T) {
			api := apitest.New()
			for i := range n {
				fixture.PutConfigMap(api, fmt.Sprintf("c%05d", i), with)
			}
			api.Put("deletionpolicies", keptOnly)
			inForce(t, api, func(t *testing.T, state *live.State) {
				expired := false
				api.Intercept(func(r apitest.Request) *apitest.Reply {
					query, _ := url.ParseQuery(r.Query)
					if at := query.Get("continue"); at != "" && !expired {
						expired = true
						reply := apitest.Refuse(410, "Expired", "the provided continue parameter is too old")
						if offered {
							reply.Body.(map[string]any)["metadata"] = map[string]any{"continue": at}
						}
						return reply
					}
					return nil
				})
				b := filler(t, api, state, 10_000)
				if err := b.newPass(nil).run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if now, _ := b.progress(); !expired || now.tallies["p"] != (tally{n, n}) {
					t.Errorf("expired: %t; %v, want %d", expired, now.tallies, n)
				}
			})
		})
	}
}
