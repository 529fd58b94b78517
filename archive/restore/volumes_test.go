package restore

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAVolumeIsFreedAsItWasBefore(t *testing.T) {
	for name, c := range map[string]struct{ annotations, want string }{
		"it stayed anyway": {`{"other": "a/b/c"}`,
			`{"metadata":{"resourceVersion":"5","uid":"u"},"spec":{"claimRef":{"resourceVersion":null,"uid":null}}}`},
		"an archive had it stay": {`{"weir.dev/retained": "Delete/web-1/c"}`,
			`{"metadata":{"annotations":{"weir.dev/retained":null},"resourceVersion":"5","uid":"u"},` +
				`"spec":{"claimRef":{"resourceVersion":null,"uid":null},"persistentVolumeReclaimPolicy":"Delete"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			v := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(`{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "v", "uid": "u", "resourceVersion": "5",
				"annotations": `+c.annotations+`}, "spec": {"persistentVolumeReclaimPolicy": "Retain", "claimRef": {"uid": "c"}}}`), v); err != nil {
				t.Fatal(err)
			}
			got, err := json.Marshal(FreedBy(v))
			if diff := cmp.Diff(c.want, string(got)); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}
