package policies

// evaluator asks the policies about an object whether they match, each at most once, and only those
// whose answer makes a difference: of a thousand policies, one condition is evaluated if the first
// decides. Failures of conditions that were not evaluated are not reported.
type evaluator struct {
	e        evaluation
	policies []*compiled // those about the resource
	said     []saying    // the answer of each of them
	errs     map[int]error
	judged   string // the subject of messages
	v        *verdict
}

type saying uint8

const (
	saysNothing saying = iota // not asked
	saysYes
	saysNo
	saysFailed   // the condition could not be evaluated
	saysRecorded // failed, and recorded
)

func (s *Set) askDeletions(q *Question, v *verdict) *evaluator {
	return newEvaluator(q, s.deletion, "the delete of ", v)
}

func newEvaluator(q *Question, list []*compiled, judged string, v *verdict) *evaluator {
	a := &evaluator{e: evaluate(q), policies: naming(list, q.Resource.GroupResource()), judged: judged, v: v}
	a.said = make([]saying, len(a.policies))
	for i, c := range a.policies {
		if c.broken != "" && q.Part.has(c) {
			a.matches(i) // its answer is not known, so it may make a difference
		}
	}
	return a
}

// says returns the answer of a policy, and asks it the first time.
func (a *evaluator) says(i int) saying {
	if a.said[i] != saysNothing {
		return a.said[i]
	}
	switch ok, err := a.policies[i].matches(&a.e); {
	case err != nil:
		a.said[i] = saysFailed
		if a.errs == nil {
			a.errs = map[int]error{}
		}
		a.errs[i] = err
	case ok:
		a.said[i] = saysYes
	default:
		a.said[i] = saysNo
	}
	return a.said[i]
}

// matches reports whether a policy matches, when the answer makes a difference. A policy that
// cannot be judged does not match, and is recorded.
func (a *evaluator) matches(i int) bool {
	if a.says(i) == saysFailed {
		a.said[i] = saysRecorded
		a.v.fail(a.policies[i], a.judged+a.e.q.what(), a.errs[i])
	}
	return a.said[i] == saysYes
}
