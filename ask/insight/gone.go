package insight

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/weir-dev/weir/controller/words"
)

// Gone says of an object that does not exist what Events tell of its deletion, and what its
// controller has created since. kindName is its kind as Events have it. It returns false if nothing
// is known.
func (w *World) Gone(o Object, kindName string, events []corev1.Event, now time.Time) (Answer, bool) {
	a := Answer{Object: o, State: "is not there"}
	for _, r := range RecordsOf(events, o, kindName) {
		a.UID = r.uid()
		c := Cause{What: "it was deleted " + r.sentence(now), Evidence: []string{fmt.Sprintf("the Event on %s; "+
			"whoever may create Events can write one, the audit log of the API server is the proof", r.root())},
			Look: "kubectl weir history"}
		if r.Namespace != "" {
			c.Look += " -n " + words.Shell(r.Namespace)
		} else {
			c.Look += " -n default"
		}
		a.Causes = append(a.Causes, c)
	}
	a.Causes = append(a.Causes, w.replacement(o, now)...)
	return a, len(a.Causes) > 0
}

// replacement returns an object that the likely controller of a deleted object has created.
// Controllers that create many objects name them after themselves, so the prefix of the name tells.
func (w *World) replacement(gone Object, now time.Time) (out []Cause) {
	kind := schema.ParseGroupResource(gone.Kind)
	for v := range w.objects() {
		if v.Kind != kind || v.Namespace != gone.Namespace || v.Deleting {
			continue
		}
		for _, o := range v.Owners {
			owner, m := w.Meta(o.UID), w.Meta(v.UID)
			if o.Controller == nil || !*o.Controller || !owns(o.Verdict) || owner == nil || owner.DeletionTimestamp != nil ||
				m == nil || !strings.HasPrefix(gone.Name, o.Name+"-") {
				continue
			}
			return append(out, Cause{
				What: fmt.Sprintf("%s %s lives, which is likely to have been its controller, and has made %s %s ago",
					words.Printable(o.Kind), words.Printable(o.Name),
					objectOf(v).Short(gone.Namespace), duration.HumanDuration(max(0, now.Sub(m.CreationTimestamp.Time)))),
				Evidence: []string{"the name of the object begins with that of the controller"}, Look: treeCommand(v),
			})
		}
	}
	return nil
}
