// Package version knows which version of Weir a binary is.
package version

import "runtime/debug"

// release is set by the build of a release: -ldflags '-X
// github.com/weir-dev/weir/internal/version.release=v1.2.3'.
var release string

// Weir is the version of this binary: of a release, of the module for go install …@v1.2.3, or dev.
func Weir() string {
	info, _ := debug.ReadBuildInfo()
	return of(release, info)
}

func of(built string, info *debug.BuildInfo) string {
	switch {
	case built != "":
		return built
	case info != nil && info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return "dev"
}
