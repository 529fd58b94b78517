package differential

import (
	"crypto/sha256"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A run is a world on both planes, in namespaces and under names of its own.
type run struct {
	World
	prefix     string
	names      map[string]string // by logical name: the one that the API server knows
	namespaces map[string]string
}

func newRun(w World, prefix string) *run {
	r := &run{World: w, prefix: prefix, names: map[string]string{}, namespaces: map[string]string{}}
	for _, o := range w.Script {
		if o.Verb != Create {
			continue
		}
		r.names[o.Object] = prefix + "-" + o.Object
		if o.As != "" {
			r.names[o.Object] = prefix + "-" + o.As
		}
		if o.Namespace != "" {
			r.namespaces[o.Object] = prefix + "-" + o.Namespace
		}
	}
	return r
}

// name is that of an object, also of one that is never made.
func (r *run) name(logical string) string {
	if name, ok := r.names[logical]; ok {
		return name
	}
	return r.prefix + "-" + logical
}

// absentUID is the uid by which an object that was not made is referred to.
func (r *run) absentUID(logical string) types.UID {
	sum := sha256.Sum256([]byte(r.prefix + " " + logical))
	return types.UID(fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}

// written is a reference as it is sent. The uid is that of the object on the side that it is sent
// to.
func (r *run) written(ref Reference, uid types.UID) metav1.OwnerReference {
	k, name := KindOf(ref.Owner), r.name(ref.Owner)
	version := k.GroupVersion()
	switch ref.Flaw {
	case Misnamed:
		name += "-misnamed"
	case Mistyped:
		k = kindNamed(k.wrong)
		version = k.GroupVersion()
	case OtherVersion:
		version.Version = k.Other
	case Unserved:
		version.Version = "v9"
	}
	return metav1.OwnerReference{
		APIVersion: version.String(), Kind: k.Kind, Name: name, UID: uid, BlockOwnerDeletion: ref.Block.value(),
	}
}

// read is the inverse of written.
func (r *run) read(ref metav1.OwnerReference, owner string) (Reference, error) {
	found := Reference{Owner: owner, Block: markOf(ref.BlockOwnerDeletion)}
	for _, flaw := range []Flaw{Sound, Misnamed, Mistyped, OtherVersion, Unserved} {
		if flaw == OtherVersion && KindOf(owner).Other == "" {
			continue
		}
		found.Flaw = flaw
		w := r.written(found, ref.UID)
		if w.APIVersion == ref.APIVersion && w.Kind == ref.Kind && w.Name == ref.Name {
			return found, nil
		}
	}
	return found, fmt.Errorf("read a reference to %s: nobody wrote %s %s %s", owner, ref.APIVersion, ref.Kind, ref.Name)
}
