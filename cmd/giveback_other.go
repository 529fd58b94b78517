//go:build !linux

package cmd

// giveBack does nothing: Weir runs on Linux, and is only developed elsewhere.
func giveBack([]byte) {}
