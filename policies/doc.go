// Package policies decides, by policy, what may be deleted and how, and which owner references may
// be written.
//
// It is pure: a Set is a value that is built from policies (Build) and asked questions (Decide). It
// reads no clock and makes no request. What only the cluster knows comes in as facts: the graph's
// as functions of the Question, those that need a request (may this user …?) as answers, which
// Decide asks for in Decision.Needs and is then asked again.
//
//	files, objects ─▶ Parse, Source ─▶ Build(previous set) ─▶ *Set, immutable, behind the caller's one atomic pointer
//	AdmissionReview ─▶ FromRequest ─▶ Question ─▶ Set.Decide ─▶ Decision: allow, or refuse with a reason and a way on
//	terminating object ─▶ Question ─▶ Set.Enforce ─▶ how the controller carries the deletion out
//	*Set ─▶ Set.Webhooks ─▶ the webhook configurations that the set needs
//
// A policy that is wrong is in the set with its problems (Set.Problems) and judges nothing, unless
// its failurePolicy is Fail: then it refuses what its resources and selectors match. The others
// never notice.
//
// The same question to the same set has the same answer, to the letter.
package policies
