package ask

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/weir-dev/weir/ask/insight"
)

// try sends the requests that have to be accepted before an object can go as dry runs.
func (a *asking) try(ctx context.Context, w *insight.World, uid types.UID) []insight.Trial {
	trials := w.Trials(uid)
	client, err := a.client()
	for i := range trials {
		t := &trials[i]
		t.As = *a.flags.Impersonate
		if err != nil {
			t.Message = err.Error()
			continue
		}
		t.Answered(answerOf(dryRun(ctx, client, t)))
	}
	return trials
}

// dryRun sends the request of a trial, with the uid as a precondition.
func dryRun(ctx context.Context, client dynamic.Interface, t *insight.Trial) error {
	objects := client.Resource(t.Resource).Namespace(t.Namespace)
	if t.Request == insight.Delete {
		return objects.Delete(ctx, t.Name, metav1.DeleteOptions{
			DryRun: []string{metav1.DryRunAll}, Preconditions: &metav1.Preconditions{UID: &t.UID},
		})
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": t.UID, "finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = objects.Patch(ctx, t.Name, types.MergePatchType, patch,
		metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// answerOf returns the reason of a refusal by the API server, and its message in one line.
func answerOf(err error) (reason metav1.StatusReason, message string) {
	if err == nil {
		return "", ""
	}
	message = strings.Join(strings.Fields(err.Error()), " ")
	if reason = apierrors.ReasonForError(err); reason == "" && !errors.As(err, new(apierrors.APIStatus)) {
		reason = insight.NoAnswer
	}
	return reason, message
}
