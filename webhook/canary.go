package webhook

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/policies"
)

// canary refuses, and repeats what it was sent: no other process can have answered. It looks at
// nothing and waits for nothing, so a slow answer is a slow webhook.
func canary(_ *http.Request, q policies.Question) answer {
	d := policies.Decision{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	d.Message = policies.AnswerToCanary(q.Options)
	return refused(d, 0)
}
