package insight

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/words"
)

// Volume is what becomes of the volume of a deleted claim.
type Volume struct {
	Name string `json:"name,omitempty"`
	// ReclaimPolicy is that of the volume: with Delete, the data is deleted, too.
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`
	// Unknown is why it is not known whether there is a volume, or what becomes of it; empty if it is.
	Unknown string `json:"unknown,omitempty"`
}

func (i *Item) isClaim() bool { return i.Kind == claims.String() && i.Outcome == Deleted }

// Claims reports whether the plan deletes claims.
func (p *Plan) Claims() bool { return slices.ContainsFunc(p.Items, (*Item).isClaim) }

// Volumes sets the volumes of claims from all persistent volumes. unread is why all may be
// incomplete, or empty.
func (p *Plan) Volumes(all []unstructured.Unstructured, unread string) {
	of := map[types.UID]*Volume{}
	for i := range all {
		claim, _, _ := unstructured.NestedString(all[i].Object, "spec", "claimRef", "uid")
		policy, _, _ := unstructured.NestedString(all[i].Object, "spec", "persistentVolumeReclaimPolicy")
		if claim != "" {
			of[types.UID(claim)] = &Volume{Name: all[i].GetName(), ReclaimPolicy: policy}
		}
	}
	for _, i := range p.Items {
		if !i.isClaim() {
			continue
		}
		if i.Volume = of[i.UID]; i.Volume == nil && unread != "" {
			i.Volume = &Volume{Unknown: unread}
		}
	}
}

// losesData reports whether the data on the volume is deleted.
func (v *Volume) losesData() bool {
	return v != nil && (v.ReclaimPolicy == "Delete" || v.ReclaimPolicy == "Recycle")
}

// note says what becomes of the volume. Without Full it omits the volume's name, so that
// claims with like volumes fold into one line.
func (v *Volume) note(style Style) string {
	if v == nil {
		return ""
	}
	volume := "its volume"
	if style.Full {
		volume += " " + words.Printable(v.Name)
	}
	switch {
	case v.Unknown != "":
		return "what becomes of its volume is not known: " + v.Unknown
	case v.ReclaimPolicy == "Recycle":
		return fmt.Sprintf("the data on %s is deleted (reclaim policy Recycle)", volume)
	case v.losesData():
		return fmt.Sprintf("%s is deleted, and the data on it (reclaim policy Delete)", volume)
	}
	return fmt.Sprintf("%s is kept (reclaim policy %s)", volume, words.Printable(v.ReclaimPolicy))
}
