//go:build !linux

package node

import "os"

// removeTree has no mounts to look for: there is no node where there is no Linux.
func removeTree(path string) error { return os.RemoveAll(path) }
