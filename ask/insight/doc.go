// Package insight answers what people ask before and after they delete something: what goes with
// it, in what order, what is kept and why, what it waits for, and who has to act.
//
// It is pure, as the graph is: a World is what was read of a cluster, and the answers follow from
// it. What was not read is said to be unknown, and never guessed.
//
//	lists ──▶ World ──▶ Plan, Tree, Pending, Orphans, Why ──▶ text, JSON
//
// Plan does not have an opinion of its own on what goes. It plays the deletion: the graph decides,
// by the table that the collector goes by, and what it asks for is done at once to the graph
// itself, as the API server would do it. So a World is used up by a Plan.
package insight
