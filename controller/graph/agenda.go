package graph

// agenda holds claims that are to be looked up again, by the round in which they are due: an owner
// that no watch shows may go at any time, and a lookup that failed may succeed. Not many at once:
// what is due and too much for a round waits in a line, so that a hundred thousand of them are no
// storm, and none is forgotten.
type agenda struct {
	round  uint32
	rounds [mostRecheck + 1][]uint32 // claims by round, modulo; those that are not due then are out of date
	lines  [2][]uint32               // due, and waiting: lookups that failed, owners that were found
}

const (
	// firstRetry and mostRetry are after how many rounds a lookup that failed is repeated, at first
	// and at last.
	firstRetry, mostRetry = 1, 64
	// firstRecheck and mostRecheck are the same for an owner that was found: it may be gone by now.
	firstRecheck, mostRecheck = 64, 1024
)

// perRound is how many lookups that failed, and how many owners that were found, are asked again at
// once.
var perRound = [2]int{64, 16}

// after doubles the first number of rounds each time, up to the most.
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

// next begins a round and returns the claims whose turn has come. due tells of a claim that was
// noted whether it still is due by now, and found in which of the lines it waits.
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
