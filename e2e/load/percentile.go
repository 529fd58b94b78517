package load

import (
	"slices"
	"time"
)

// Percentile is the highest of the lowest p hundredths of v, by nearest rank (p is above 0 and at
// most 100); 0 if there are none.
func Percentile(v []time.Duration, p int) time.Duration {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return v[(len(v)*p+99)/100-1]
}
