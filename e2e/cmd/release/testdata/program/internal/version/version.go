// Package version has the version where Weir has it.
package version

// release is set by the build of a release.
var release = "dev"

// Weir is the version.
func Weir() string { return release }
