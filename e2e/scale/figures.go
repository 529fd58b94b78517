package scale

import (
	"slices"
	"time"
)

// Rate is n a second; 0 where no time went by.
func Rate(n int64, took time.Duration) float64 {
	if took <= 0 {
		return 0
	}
	return float64(n) / took.Seconds()
}

// Each is how many bytes each of n objects takes above what is taken without them; 0 where there
// are none.
func Each(empty, full uint64, n int) float64 {
	if n == 0 {
		return 0
	}
	return (float64(full) - float64(empty)) / float64(n)
}

// LongestPause is the longest time between one thing and the next, of things that happened at
// times, in any order, as far as it ends after since; 0 if nothing happened then. Where nothing
// happened before, it is counted from since.
func LongestPause(times []time.Time, since time.Time) time.Duration {
	longest, last := time.Duration(0), since
	for _, t := range slices.SortedFunc(slices.Values(times), time.Time.Compare) {
		if t.After(since) {
			longest = max(longest, t.Sub(last))
		}
		last = t
	}
	return longest
}
