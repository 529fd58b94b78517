package webhook

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/policies"
)

// mostBody bounds the body of a request, in bytes. etcd takes 1.5 MiB of an object; a review may
// have it twice, and the API server writes each of the characters <, > and & in six.
const mostBody = 20 << 20

// mostDepth bounds how deeply a review is nested, in levels. Its objects are two levels down.
const mostDepth = 2 + policies.MostDepth

// understand decodes a review, and checks that it is one.
func understand(body []byte) (*admissionv1.AdmissionReview, error) {
	in, err := decode(body)
	if err != nil {
		return nil, fmt.Errorf("decode the review: %w", err)
	}
	if in.APIVersion != admissionv1.SchemeGroupVersion.String() || in.Kind != "AdmissionReview" {
		return nil, fmt.Errorf("this is %s %s, want an AdmissionReview of %s",
			in.APIVersion, in.Kind, admissionv1.SchemeGroupVersion)
	}
	if in.Request == nil || in.Request.UID == "" {
		return nil, errors.New("the review has no request, or its request no uid")
	}
	return in, nil
}

// decode decodes a review without its objects, which are nearly all of it.
func decode(body []byte) (*admissionv1.AdmissionReview, error) {
	if policies.TooDeep(body, mostDepth) {
		return nil, errors.New("it is nested too deeply")
	}
	rest, objects := body, [2][]byte{}
	if gjson.ValidBytes(body) { // of anything else, the decoder says what is wrong
		rest, objects = apart(body)
	}
	var in admissionv1.AdmissionReview
	if err := json.Unmarshal(rest, &in); err != nil {
		return nil, err
	}
	if in.Request != nil {
		for i, to := range []*runtime.RawExtension{&in.Request.Object, &in.Request.OldObject} {
			if objects[i] != nil {
				to.Raw = objects[i]
			}
		}
	}
	return &in, nil
}

// apart takes object and oldObject out of a review.
func apart(body []byte) (rest []byte, objects [2][]byte) {
	rest = make([]byte, 0, 2048)
	from := 0
	for i, path := range []string{"request.object", "request.oldObject"} { // the API server's order
		v := gjson.GetBytes(body, path)
		if v.Index < from || !v.IsObject() {
			continue
		}
		to := v.Index + len(v.Raw)
		objects[i] = body[v.Index:to:to]
		rest = append(append(rest, body[from:v.Index]...), "null"...)
		from = to
	}
	return append(rest, body[from:]...), objects
}
