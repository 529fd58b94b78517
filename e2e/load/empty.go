package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
)

// EmptyGuard is the first argument of a process that is to call ServeEmpty.
const EmptyGuard = "empty-webhook"

// AddsFinalizer is a JSON patch for objects that have no finalizers: the shortest that adds weir's.
const AddsFinalizer = `[{"op":"add","path":"/metadata/finalizers","value":["` + weirFinalizer + `"]}]`

// ServeEmpty is a webhook that allows everything unseen: it decodes a review for its uid,
// and no more. args are its address, HOST:PORT, the files of its certificate and key, where
// it says over plain HTTP how many reviews it has answered, and the JSON patch that it answers
// each of them with; empty: none.
func ServeEmpty(ctx context.Context, args []string) error {
	if len(args) != 5 {
		return fmt.Errorf("%s: want ADDRESS CERTIFICATE KEY COUNT-ADDRESS PATCH, got %q", EmptyGuard, args)
	}
	var asked atomic.Int64
	hook := &http.Server{Addr: args[0], Handler: http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(in.Body).Decode(&review); err != nil {
			http.Error(out, err.Error(), http.StatusBadRequest)
			return
		}
		asked.Add(1)
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
		if args[4] != "" {
			review.Response.Patch, review.Response.PatchType = []byte(args[4]), new(admissionv1.PatchTypeJSONPatch)
		}
		review.Request = nil
		out.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(out).Encode(review) // the API server went away: there is none to tell
	})}
	count := &http.Server{Addr: args[3], Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(out, asked.Load())
	})}
	ended := make(chan error, 2)
	go func() { ended <- hook.ListenAndServeTLS(args[1], args[2]) }()
	go func() { ended <- count.ListenAndServe() }()
	select {
	case <-ctx.Done():
		return errors.Join(hook.Close(), count.Close())
	case err := <-ended:
		return fmt.Errorf("%s: %w", EmptyGuard, err)
	}
}
