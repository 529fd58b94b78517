package webhook

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// canary refuses, and repeats the number that it was sent, which no other process can do. It waits
// for nothing, so a slow answer means a slow webhook.
func canary(_ *http.Request, q policies.Question) answer {
	d := policies.Decision{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	d.Message = policies.AnswerToCanary(q.Options)
	return refused(d, 0)
}
