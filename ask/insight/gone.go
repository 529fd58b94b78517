package insight

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/controller/words"
)

// Gone says of an object that does not exist what Events tell of its deletion. kindName is its kind
// as Events have it. It returns false if nothing is known.
func Gone(o Object, kindName string, events []corev1.Event, now time.Time) (Answer, bool) {
	a := Answer{Object: o, State: "is not there"}
	for _, r := range RecordsOf(events, o, kindName, false) {
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
	return a, len(a.Causes) > 0
}
