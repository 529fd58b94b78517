package drain_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/drain"
)

// A namespace with a pod and a Secret is being deleted: the pod is deleted first, and the Secret
// when it is gone.
func ExampleNext() {
	pods, secrets := schema.GroupResource{Resource: "pods"}, schema.GroupResource{Resource: "secrets"}
	state := drain.State{Waves: drain.DefaultWaves(), Discovered: true, Kinds: []drain.Kind{
		{Kind: pods, Wave: drain.DefaultWave(pods), Complete: true, Total: 1},
		{Kind: secrets, Wave: drain.DefaultWave(secrets), Complete: true, Total: 1},
	}}
	step := drain.Next(state)
	fmt.Println(step.Verb, step.Kinds, "because", step.Why)

	state.Kinds[0].Terminating, state.Kinds[0].Tried = 1, true
	step = drain.Next(state)
	fmt.Println(step.Verb, "because", step.Why)

	state.Kinds[0].Total, state.Kinds[0].Terminating = 0, 0
	step = drain.Next(state)
	fmt.Println(step.Verb, step.Kinds, "because", step.Why)
	// Output:
	// delete [pods] because wave 1 of 2 (pods): deleting
	// wait because wave 1 of 2 (pods): waiting for 1 pods (1 terminating)
	// delete [secrets] because wave 2 of 2 (rest): deleting
}
