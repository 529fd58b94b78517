package follow

import "strconv"

// VersionNumber returns a resourceVersion as a number, which orders the events of one kind; 0 if it
// is none.
func VersionNumber(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
