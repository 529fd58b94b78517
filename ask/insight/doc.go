// Package insight answers what users ask before and after they delete something: what would also be
// deleted, in what order, what is kept and why, what it waits for, and who has to act.
//
// It is pure, as the graph is: a World is what was read of a cluster, and the answers follow from
// it. What was not read is said to be unknown, and never guessed.
//
//	lists ──▶ World ──▶ Plan, Tree, Pending, Orphans, Why ──▶ text, JSON
//
// Plan has no rules of its own about what is deleted. It plays the deletion: the graph decides by
// the table of the collector, and what it asks for is done at once to the graph itself, as the API
// server would do it. So a World cannot be used after a Plan.
package insight
