package restore

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/weir-dev/weir/policies/v1beta1"
)

func volumeOf(claim *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "volumeName")
	return name
}

// prepareKind adapts what is written to its kind, where that depends on other objects.
func (p *planning) prepareKind(i *item) {
	s := i.step
	switch i.ref.Kind {
	case volumes:
		free(s.Object)
	case claims:
		if name := volumeOf(i.record.Object); name != "" && s.Outcome == Create {
			p.prepareClaim(i, Ref{Kind: volumes, Name: name})
		}
	case jobs:
		s.Notes = append(s.Notes, "runs from its start")
	}
}

// free makes a volume wait for a claim with the name that its claim had. Without the name any claim
// could get it.
func free(volume *unstructured.Unstructured) {
	unstructured.RemoveNestedField(volume.Object, "spec", "claimRef", "uid")
	unstructured.RemoveNestedField(volume.Object, "spec", "claimRef", "resourceVersion")
}

// FreedBy returns the patch that makes a volume wait for a claim with the name that its claim had.
// It undoes what an archive has changed to retain the volume.
func FreedBy(volume *unstructured.Unstructured) map[string]any {
	spec := map[string]any{"claimRef": map[string]any{"uid": nil, "resourceVersion": nil}}
	metadata := map[string]any{"uid": volume.GetUID(), "resourceVersion": volume.GetResourceVersion()}
	if policy, _, retained := strings.Cut(volume.GetAnnotations()[v1beta1.RetainedAnnotation], "/"); retained {
		spec["persistentVolumeReclaimPolicy"] = policy
		metadata["annotations"] = map[string]any{v1beta1.RetainedAnnotation: nil}
	}
	return map[string]any{"metadata": metadata, "spec": spec}
}

// prepareClaim gives a claim its volume back. If that is gone, or belongs to another claim, the
// claim asks for a new one.
func (p *planning) prepareClaim(i *item, volume Ref) {
	why := ""
	live, of := p.Live[volume], p.byRef[volume]
	switch {
	case live != nil:
		why = p.freed(i, live)
	case p.Unread[volume] != "":
		why = "whether its volume is there could not be read: " + p.Unread[volume]
	case of != nil && of.step != nil && (p.left(of) == "" && p.blocked(of) == ""):
		i.needs = append(i.needs, of)
	default:
		why = "its volume is gone"
	}
	if why == "" {
		return
	}
	s := i.step
	s.Fresh = true
	s.Notes = append(s.Notes, fmt.Sprintf("gets a new, empty volume (%s)", why))
	unstructured.RemoveNestedField(s.Object.Object, "spec", "volumeName")
	unstructured.RemoveNestedField(s.Object.Object, "metadata", "annotations", "volume.kubernetes.io/selected-node")
}

// freed adds the step that frees a volume for a claim, or returns why that cannot be.
func (p *planning) freed(i *item, live *unstructured.Unstructured) string {
	get := func(fields ...string) string {
		value, _, _ := unstructured.NestedString(live.Object, fields...)
		return value
	}
	uid := get("spec", "claimRef", "uid")
	switch {
	case live.GetDeletionTimestamp() != nil:
		return "its volume is being deleted"
	case uid != "" && get("spec", "persistentVolumeReclaimPolicy") != "Retain":
		return "its volume is not retained: it is, or will be, deleted with its data"
	case get("spec", "claimRef", "namespace") != i.ref.Namespace || get("spec", "claimRef", "name") != i.ref.Name:
		return "its volume is no longer kept for it"
	case uid == "":
		return "" // it waits for a claim of the name
	case uid != string(i.record.Object.GetUID()):
		return "its volume belongs to another claim now"
	}
	// With the uid of the claim that is gone the new claim would be Lost, for good.
	p.out = append(p.out, &Step{Ref: Ref{Kind: volumes, Name: live.GetName()}, Version: "v1", UID: live.GetUID(),
		Outcome: Free, Live: live, Why: fmt.Sprintf("is kept for the claim %s, and waits for the new one", i.ref.Name)})
	return ""
}
