package follow

import "strconv"

// VersionNumber is a resourceVersion as a number, which orders what happened to one kind; 0 if it
// is none.
func VersionNumber(resourceVersion string) uint64 {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
