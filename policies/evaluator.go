package policies

// evaluator asks the policies about an object whether they match, each at most once, and only those
// whose answer makes a difference: a thousand policies are one condition, where the first of them
// decides. Of one that was not asked, nothing is said, not even that its condition would have
// failed.
type evaluator struct {
	e        evaluation
	policies []*compiled // about the resource
	said     []saying    // of each of them
	errs     map[int]error
	judged   string // what is judged, for the user
	v        *verdict
}

type saying uint8

const (
	saysNothing saying = iota // not asked
	saysYes
	saysNo
	saysFailed   // to be judged
	saysRecorded // failed, and recorded
)

func (s *Set) askDeletions(q *Question, v *verdict) *evaluator {
	return newEvaluator(q, &s.deletion, "the delete of ", v)
}

func newEvaluator(q *Question, x *index, judged string, v *verdict) *evaluator {
	a := &evaluator{e: evaluate(q, x.shared), policies: x.about(q.Resource.GroupResource()), judged: judged, v: v}
	a.said = make([]saying, len(a.policies))
	for i, c := range a.policies {
		if c.broken != "" && q.Part.has(c) {
			a.matches(i) // what it would say is not known, so it may make a difference
		}
	}
	return a
}

// says asks a policy.
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

// matches tells whether a policy matches whose answer makes a difference. One that cannot be judged
// does not, and is recorded.
func (a *evaluator) matches(i int) bool {
	if a.says(i) == saysFailed {
		a.said[i] = saysRecorded
		a.v.fail(a.policies[i], a.judged+a.e.q.what(), a.errs[i])
	}
	return a.said[i] == saysYes
}
