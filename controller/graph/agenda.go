package graph

// agenda holds claims that are to be looked up again, by the round in which they are due: an owner
// that no watch shows may go at any time, and a lookup that failed may succeed. A round has a
// limit. What is due beyond it waits in a line, and is not forgotten.
type agenda struct {
	round  uint32
	rounds [mostRecheck + 1][]uint32 // claims by round, modulo; those that are not due then are stale
	lines  [2][]uint32               // due, and waiting: lookups that failed, owners that were found
}

const (
	// firstRetry and mostRetry are how many rounds a failed lookup waits, at first and at most.
	firstRetry, mostRetry = 1, 64
	// firstRecheck and mostRecheck are the same for an owner that was found, and may be gone by now.
	firstRecheck, mostRecheck = 64, 1024
)

// perRound is how many failed lookups, and how many found owners, are asked again in a round.
var perRound = [2]int{64, 16}

// after doubles the first number of rounds with each time, up to the most.
func after(first, most uint32, times uint8) uint32 {
	return min(first<<min(times-1, 16), most)
}

// add notes a claim and returns the round in which it is due.
func (a *agenda) add(id, rounds uint32) (due uint32) {
	due = a.round + rounds
	at := due % uint32(len(a.rounds))
	a.rounds[at] = append(a.rounds[at], id)
	return due
}

// next begins a round and returns the claims whose turn has come. due reports whether a noted claim
// is still due; found selects its line.
func (a *agenda) next(due func(id uint32) bool, found func(id uint32) bool) (ids []uint32) {
	a.round++
	at := a.round % uint32(len(a.rounds))
	for _, id := range a.rounds[at] {
		line := 0
		if due(id) && found(id) {
			line = 1
		}
		a.lines[line] = append(a.lines[line], id)
	}
	a.rounds[at] = nil
	for i := range a.lines {
		n := 0
		for ; len(a.lines[i]) > 0 && n < perRound[i]; a.lines[i] = a.lines[i][1:] {
			if id := a.lines[i][0]; due(id) {
				ids = append(ids, id)
				n++
			}
		}
		if len(a.lines[i]) == 0 {
			a.lines[i] = nil
		}
	}
	return ids
}
