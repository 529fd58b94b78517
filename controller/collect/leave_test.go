package collect

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/internal/testkit/fixture"
)

// protected refuses a delete as the webhook does for a policy that protects the object.
func protected(r *http.Request) *http.Response {
	answer := fixture.Reply(r, 403, "", `{"kind":"Status","apiVersion":"v1","status":"Failure","code":403,"reason":"Forbidden",
		"message":"admission webhook \"guard.weir.dev\" denied the request: no",
		"details":{"causes":[{"reason":"weir.dev/protected","message":"precious"}]}}`)
	answer.Header.Set("Content-Type", "application/json")
	return answer
}

// TestWhatHappensBeforeTheAnswerIsSeenTo: an object is released from an owner that is gone, and the
// watch shows that its other owner has gone, too, before the release is answered.
func TestWhatHappensBeforeTheAnswerIsSeenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e *edge
		patches := 0
		e = newEdge(t, func(next http.RoundTripper) http.RoundTripper {
			return fixture.Tripper(func(r *http.Request) (*http.Response, error) {
				if about(r, fixture.ConfigMaps, http.MethodDelete) {
					return protected(r), nil
				}
				answer, err := next.RoundTrip(r)
				if about(r, fixture.ConfigMaps, http.MethodPatch) {
					if patches++; patches == 1 {
						e.api.Remove(key(fixture.ConfigMaps, "boss"))
						<-time.After(time.Second)
					}
				}
				return answer, err
			})
		})
		e.put(fixture.ConfigMaps, "boss")
		e.put(fixture.ConfigMaps, "first")
		e.put(fixture.ConfigMaps, "kept", "ConfigMap/first", "ConfigMap/boss")
		e.work.Beside, e.work.Guards = true, func(schema.GroupResource) bool { return true }
		e.run(1, func(context.Context) {
			e.api.Remove(key(fixture.ConfigMaps, "first"))
			<-time.After(10 * time.Minute)
			if refs := e.api.Get(key(fixture.ConfigMaps, "kept"))["metadata"].(map[string]any)["ownerReferences"]; refs != nil {
				t.Errorf("it still has the owner references %v", refs)
			}
		})
	})
}

// TestWhatAPolicyProtectsIsReleased: a refusal of the delete that says so is the last, in both
// modes. Beside another collector it is asked for with a dry run, of kinds that a policy may
// protect alone, and only once the other has had its time.
func TestWhatAPolicyProtectsIsReleased(t *testing.T) {
	for beside, want := range map[bool][]string{
		false: {"DELETE free", "PATCH kept"},
		true:  {"PATCH kept"},
	} {
		t.Run(fmt.Sprint("beside ", beside), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				first := time.Duration(-1)
				e := newEdge(t, fault(func(r *http.Request) (*http.Response, error) {
					if !about(r, fixture.ConfigMaps, http.MethodDelete) {
						return nil, nil
					}
					if first < 0 {
						first = time.Since(began)
					}
					return protected(r), nil
				}).through)
				e.put(fixture.ConfigMaps, "boss")
				e.put(fixture.ConfigMaps, "kept", "ConfigMap/boss")
				e.put(fixture.Secrets, "free", "ConfigMap/boss")
				e.work.Beside, e.work.Guards = beside, func(kind schema.GroupResource) bool { return kind == fixture.ConfigMaps }
				e.run(1, func(context.Context) {
					e.api.Remove(key(fixture.ConfigMaps, "boss"))
					<-time.After(10 * time.Minute)
					if got := e.sent(); !slices.Equal(got, want) {
						t.Errorf("sent %q, want %q", got, want)
					}
					if age := e.work.Oldest(); age != 0 {
						t.Errorf("something has waited for %s", age)
					}
				})
				if first < 0 || beside != (first >= firstTry) {
					t.Errorf("its delete is tried after %s", first)
				}
				meta := e.api.Get(key(fixture.ConfigMaps, "kept"))["metadata"].(map[string]any)
				why, _ := meta["annotations"].(map[string]any)["weir.dev/kept"].(string)
				if meta["ownerReferences"] != nil || !strings.HasSuffix(why, "kept, because a policy protects it: precious") {
					t.Errorf("%v", meta)
				}
			})
		})
	}
}
