//go:build full

package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var (
	predictSeed   = flag.Uint64("predict.seed", 0, "seed of the deletes that are planned under policies; 0: from the clock")
	predictRounds = flag.Int("predict.rounds", 1, "rounds of them in each mode, each with policies of its own")
)

const deletesInRound = 5

// predictedPolicies are what a policy may say about ConfigMaps or Secrets; keeps: ConfigMaps that
// depend on them are kept.
var predictedPolicies = []struct {
	propagation string
	keeps       bool
}{{"", false}, {"Background", false}, {"Foreground", false}, {"Orphan", false}, {"Background", true}, {"Foreground", true}}

// TestPlansUnderPoliciesComeTrue: random objects own each other, under random policies and beside
// both collectors. What `kubectl weir plan` says of a delete is what happens to each of them, and
// no other object changes; what it says to be refused is refused. Where it says that something is
// in doubt, only what it does not name at all must stay as it is. So it is of a namespace, which
// takes along what is in it, and of a definition with instances: before finalizers of others come
// off, and after.
func TestPlansUnderPoliciesComeTrue(t *testing.T) {
	if *predictSeed == 0 {
		*predictSeed = uint64(time.Now().UnixNano())
	}
	t.Parallel()
	for m := range enforced {
		t.Run(string(m), func(t *testing.T) {
			t.Parallel()
			t.Logf("-predict.seed=%d -predict.rounds=%d", *predictSeed, *predictRounds)
			random := rand.New(rand.NewPCG(*predictSeed, uint64(len(m))))
			var all predicted
			for round := range *predictRounds {
				t.Run(fmt.Sprint("round ", round), func(t *testing.T) {
					p := predictor{fixture: newEnforced(t, m), random: random}
					if m == replace {
						p.awaitCollector()
					}
					p.policies()
					for i := range deletesInRound {
						p.deleteOne(fmt.Sprintf("d%d", i))
					}
					p.deleteNamespace()
					p.deleteDefinition()
					all.add(p.sum)
				})
			}
			t.Logf("%d deletes: %d objects went as planned, %d of them after finalizers had come off, %d were kept as planned, %d deletes were refused as planned, %d were in doubt",
				all.deletes, all.went, all.later, all.kept, all.refused, all.doubtful)
			if all.went == 0 || all.later == 0 {
				t.Error("nothing that was planned went")
			}
		})
	}
}

// predicted counts what came true.
type predicted struct{ deletes, went, later, kept, refused, doubtful int }

func (p *predicted) add(o predicted) {
	p.deletes, p.went, p.later, p.kept = p.deletes+o.deletes, p.went+o.went, p.later+o.later, p.kept+o.kept
	p.refused, p.doubtful = p.refused+o.refused, p.doubtful+o.doubtful
}

type predictor struct {
	*fixture
	sum    predicted
	random *rand.Rand
	around *fixture // in which it is settled what came of a delete; nil: the same
}

// calm returns when all that follows from what has happened has.
func (p *predictor) calm() {
	p.Helper()
	if p.around != nil {
		p.around.settle()
		return
	}
	p.settle()
}

// awaitCollector waits until plans and the webhook, which remembers its answer for a second, know
// for sure that weir collects.
func (p *predictor) awaitCollector() {
	p.Helper()
	p.until("the canary stands", func(ctx context.Context) (bool, error) {
		canary, err := p.typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, collectorCanary, metav1.GetOptions{})
		return err == nil && time.Since(canary.CreationTimestamp.Time) > 13*time.Second, err
	})
}

// policies makes one for each of two kinds, or none.
func (p *predictor) policies() {
	p.Helper()
	for _, short := range []string{"cm", "sec"} {
		resource := p.kinds[short].resource
		says := predictedPolicies[p.random.IntN(len(predictedPolicies))]
		p.Logf("%s: %+v", resource, says)
		if says.propagation == "" {
			continue
		}
		spec := fmt.Sprintf(`
  match:
    resources: [{apiGroups: [""], resources: [%s]}]
    HERE
  propagation:
    default: %s`, resource, says.propagation)
		if says.keeps {
			spec += `
    dependents: [{apiGroups: [""], resources: [configmaps], action: Orphan}]`
		}
		name := "predict-" + short + "-" + p.namespace
		p.policyNamed("DeletionPolicy", name, spec)
		p.awaitCondition("DeletionPolicy", name, "Valid", metav1.ConditionTrue)
		if says.keeps || says.propagation != "Background" {
			p.awaitFinalizerAdded(short)
		}
	}
}

// graph makes objects that own each other, and returns their names, and the one to delete.
func (p *predictor) graph(prefix string) (names []string, root string) {
	p.Helper()
	var roots []string
	for i := range 4 + p.random.IntN(5) {
		name := fmt.Sprintf("%s-o%d", prefix, i)
		var owners []string
		for range min(i, 1+p.random.IntN(2)) {
			owner := names[p.random.IntN(len(names))]
			if !slices.ContainsFunc(owners, func(o string) bool { return strings.TrimSuffix(o, "!block") == owner }) {
				owners = append(owners, owner+[]string{"", "!block"}[p.random.IntN(2)])
			}
		}
		if i > 0 && p.random.IntN(8) == 0 {
			owners = nil
		}
		line := []string{"cm ", "sec "}[p.random.IntN(2)] + name
		if len(owners) == 0 {
			roots = append(roots, name)
		} else {
			line += " owners=(" + strings.Join(owners, ",") + ")"
		}
		p.make(line)
		names = append(names, name)
	}
	if p.random.IntN(5) == 0 {
		return names, names[p.random.IntN(len(names))]
	}
	return names, roots[p.random.IntN(len(roots))]
}

// foretold is what is looked at of a plan.
type foretold struct {
	Verdicts []foretoldVerdict
	Items    []foretoldItem
}

type foretoldItem struct {
	UID        types.UID
	Outcome    string
	Doubt      string
	Contested  string
	Why        string
	Finalizers []string
	Stage      int
}

// outcomes are what becomes of objects: at first "held" of those that wait for finalizers of
// others, and "later" of what goes only after that; in the end these are gone, too.
func (f *foretold) outcomes(end bool) map[types.UID]string {
	out := map[types.UID]string{}
	for _, i := range f.Items {
		out[i.UID] = i.Outcome
		switch {
		case end || i.Outcome != "delete":
		case len(i.Finalizers) > 0:
			out[i.UID] = "held"
		case i.Stage > 0:
			out[i.UID] = "later"
		}
	}
	return out
}

func (p *predictor) deleteOne(prefix string) {
	p.Helper()
	names, root := p.graph(prefix)
	p.settle()
	policy := []metav1.DeletionPropagation{background, foreground, orphan}[p.random.IntN(3)]
	o := p.of(root)
	var plan foretold
	text := p.mustAsk("plan", o.resource, root, "--cascade", strings.ToLower(string(policy)), "-o", "json")
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		p.Fatal(err)
	}
	before := p.describe(names)
	p.sum.deletes++
	err := p.at(o).Delete(p.Context(), root, metav1.DeleteOptions{PropagationPolicy: &policy, Preconditions: &metav1.Preconditions{UID: &o.uid}})
	if refused := apierrors.IsForbidden(err); err != nil && !refused || refused != plan.verdict().Refused {
		p.Fatalf("delete of %s with %s: %v; the plan said %+v", root, policy, err, plan.Verdicts)
	}
	if err != nil {
		p.sum.refused++
		plan.Items = nil // nothing goes
	}
	outcomes := plan.outcomes(true)
	p.compare(names, before, outcomes, plan.doubt(), fmt.Sprintf("delete of %s with %s of\n%s\nplan:\n%s", root, policy, strings.Join(before, "\n"), text))
}

type foretoldVerdict struct {
	Refused        bool
	Message, Doubt string
}

// verdict is that about the one object; where there are no policies there is none.
func (f *foretold) verdict() (v foretoldVerdict) {
	if len(f.Verdicts) > 0 {
		return f.Verdicts[0]
	}
	return v
}

// doubt tells whether anything is in doubt.
func (f *foretold) doubt() bool {
	for _, i := range f.Items {
		if i.Doubt != "" || i.Contested != "" {
			return true
		}
	}
	return f.verdict().Doubt != ""
}

// compare holds a plan against what became of the objects.
func (p *predictor) compare(names, before []string, outcome map[types.UID]string, doubt bool, of string) {
	p.Helper()
	if doubt {
		p.sum.doubtful++
	}
	wrong := func(now []string) (said []string) {
		for i, name := range names {
			switch o := outcome[p.of(name).uid]; {
			case o == "" && before[i] != now[i]:
				said = append(said, fmt.Sprintf("%s is not in the plan, was %s and is %s", name, before[i], now[i]))
			case doubt:
			case o == "delete" && !strings.HasSuffix(now[i], "gone"):
				said = append(said, fmt.Sprintf("%s was to go, and is %s", name, now[i]))
			case o == "held" && !strings.HasSuffix(now[i], " terminating"):
				said = append(said, fmt.Sprintf("%s was to wait for finalizers, and is %s", name, now[i]))
			case o == "later" && strings.HasSuffix(now[i], "gone"):
				said = append(said, fmt.Sprintf("%s was to go after others, and is gone", name))
			case o == "release" && (now[i] == before[i] || strings.HasSuffix(now[i], "gone")):
				said = append(said, fmt.Sprintf("%s was to lose a reference, was %s and is %s", name, before[i], now[i]))
			}
		}
		return said
	}
	// What is to happen may take its time; what is not to happen would have by the time that all
	// has settled.
	var said []string
	for deadline := time.Now().Add(patience); ; {
		p.calm()
		if said = wrong(p.describe(names)); len(said) == 0 || time.Now().After(deadline) {
			break
		}
	}
	p.calm()
	if said = wrong(p.describe(names)); len(said) > 0 {
		p.Errorf("%s\n%s", strings.Join(said, "\n"), of)
		return
	}
	for _, name := range names {
		switch outcome[p.of(name).uid] {
		case "delete":
			p.sum.went++
		case "release":
			p.sum.kept++
		}
	}
}

// describe says how each object is: with its owners that are objects of this test, which its
// finalizers do not change.
func (p *predictor) describe(names []string) (all []string) {
	p.Helper()
	for _, name := range names {
		text := name + " gone"
		if o := p.get(name); o != nil && o.GetUID() == p.of(name).uid {
			text = fmt.Sprintf("%s %s owners=(%s)", strings.ToLower(o.GetKind()), name, ownersText(o.GetOwnerReferences()))
			if o.GetDeletionTimestamp() != nil {
				text += " terminating"
			}
		}
		all = append(all, text)
	}
	return all
}
