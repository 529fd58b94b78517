package drain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/weir-dev/weir/controller/words"
)

// The text of conditions is bounded: users who create pods choose their finalizers, webhooks choose
// what they answer, and the API server stores no namespace of more than 1.5 MB. MostReason bounds a
// refusal, or why a list failed, and mostMessage the message of a condition, in bytes.
// mostFinalizers is how many finalizers are counted by name.
const (
	MostReason     = 1024
	mostMessage    = 4096
	mostFinalizers = 20
)

// Draining is Weir's own condition. It says which wave is under way, and what it waits for.
const Draining corev1.NamespaceConditionType = "WeirDraining"

// Conditions returns the conditions of a namespace at a step: Kubernetes' five with their types,
// reasons and messages (RB 7.20), and Weir's own. Unlike the reference's, they are true in every
// phase (RB 7.22). The same state gives the same text.
func Conditions(s State, step Step) []corev1.NamespaceCondition {
	all := []corev1.NamespaceCondition{
		discoveryFailure(s), parsingFailure(), contentFailure(s), contentRemaining(s), finalizersRemaining(s),
		DrainingCondition(step),
	}
	for i := range all {
		all[i].Message = words.Cut(all[i].Message, mostMessage)
	}
	return all
}

// DrainingCondition returns Weir's own condition alone, for use beside a namespace controller that
// writes the others.
func DrainingCondition(step Step) corev1.NamespaceCondition {
	c := corev1.NamespaceCondition{Type: Draining, Status: corev1.ConditionTrue, Message: words.Cut(step.Why, mostMessage)}
	switch {
	case step.Failed:
		c.Reason = "Failed"
	case step.TimedOut:
		c.Reason = "TimedOut"
	case step.Verb == Finalize:
		c.Status, c.Reason = corev1.ConditionFalse, "Drained"
	default:
		c.Reason = map[Verb]string{List: "Counting", Delete: "Deleting", Wait: "Waiting", Discover: "Waiting"}[step.Verb]
	}
	return c
}

func condition(
	t corev1.NamespaceConditionType, bad bool, badReason, badMessage, goodReason, goodMessage string,
) corev1.NamespaceCondition {
	if bad {
		return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionTrue, Reason: badReason, Message: badMessage}
	}
	return corev1.NamespaceCondition{Type: t, Status: corev1.ConditionFalse, Reason: goodReason, Message: goodMessage}
}

func discoveryFailure(s State) corev1.NamespaceCondition {
	if !s.Discovered && s.DiscoveryFailure != "" {
		return condition(corev1.NamespaceDeletionDiscoveryFailure, true, "DiscoveryFailed", s.DiscoveryFailure, "", "")
	}
	return condition(corev1.NamespaceDeletionDiscoveryFailure, len(s.Undiscovered) > 0, "DiscoveryFailed",
		fmt.Sprintf("Discovery failed for some groups, %d failing: %s",
			len(s.Undiscovered), strings.Join(s.Undiscovered, ", ")),
		"ResourcesDiscovered", "All resources successfully discovered")
}

// parsingFailure is never true here: no API server serves a group version that cannot be parsed.
func parsingFailure() corev1.NamespaceCondition {
	return condition(corev1.NamespaceDeletionGVParsingFailure, false, "", "",
		"ParsedGroupVersions", "All legacy kube types successfully parsed")
}

func contentFailure(s State) corev1.NamespaceCondition {
	var failures []string
	for _, k := range s.Kinds {
		if k.Refused != "" {
			failures = append(failures, fmt.Sprintf("%s: %s", k.Kind, k.Refused))
		}
		if k.Unreadable != "" {
			failures = append(failures, fmt.Sprintf("%s cannot be listed: %s", k.Kind, k.Unreadable))
		}
	}
	slices.Sort(failures)
	failures = slices.Compact(failures) // a kind that is in several waves is listed only once
	return condition(corev1.NamespaceDeletionContentFailure, len(failures) > 0, "ContentDeletionFailed",
		fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(failures), strings.Join(failures, ", ")),
		"ContentDeleted", "All content successfully deleted, may be waiting on finalization")
}

func contentRemaining(s State) corev1.NamespaceCondition {
	totals := map[schema.GroupResource]int{}
	for _, k := range s.Kinds {
		totals[k.Kind] += k.Total
	}
	var remaining []string
	for kind, n := range totals {
		if n > 0 { // "pods." with the dot: tools match the reference's text (RB 7.23)
			remaining = append(remaining, fmt.Sprintf("%s.%s has %d resource instances", kind.Resource, kind.Group, n))
		}
	}
	slices.Sort(remaining)
	return condition(corev1.NamespaceContentRemaining, len(remaining) > 0, "SomeResourcesRemain",
		"Some resources are remaining: "+strings.Join(remaining, ", "),
		"ContentRemoved", "All content successfully removed")
}

func finalizersRemaining(s State) corev1.NamespaceCondition {
	counts := maps.Clone(s.Finalizers)
	for _, k := range s.Kinds {
		for f, n := range k.Finalizers {
			if counts == nil {
				counts = map[string]int{}
			}
			counts[f] += n
		}
	}
	var remaining []string
	for i, f := range slices.Sorted(maps.Keys(counts)) {
		if i == mostFinalizers {
			remaining = append(remaining, fmt.Sprintf("and %d more", len(counts)-i))
			break
		}
		remaining = append(remaining, fmt.Sprintf("%s in %d resource instances", f, counts[f]))
	}
	return condition(corev1.NamespaceFinalizersRemaining, len(remaining) > 0, "SomeFinalizersRemain",
		"Some content in the namespace has finalizers remaining: "+strings.Join(remaining, ", "),
		"ContentHasNoFinalizers", "All content-preserving finalizers finished")
}
