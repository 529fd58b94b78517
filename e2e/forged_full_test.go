//go:build full

package e2e

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// The process lives, and judges the next delete.
func TestNestedReviewsEndNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make("cm one")
		// The larger one takes too much when it is decoded, and no reader gets as far as its depth.
		for size, want := range map[int]int{4 << 20: http.StatusBadRequest, 16 << 20: http.StatusRequestEntityTooLarge} {
			if code, text := w.stranger("/"+w.webhookToken()+"/delete", strings.Repeat("[", size)); code != want {
				t.Errorf("%d bytes: %d %s", size, code, text)
			}
		}
		w.until("the next delete is judged", func(context.Context) (bool, error) {
			_, err := w.kubectl("delete", "configmap", "one")
			return err == nil, nil //nolint:nilerr // not yet
		})
		w.awaitGone("one")
	})
}
