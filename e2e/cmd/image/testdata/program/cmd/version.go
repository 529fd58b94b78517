// Package cmd has the version where Weir has it.
package cmd

// version is set when a release is built.
var version = "dev"

// Version is the version.
func Version() string { return version }
