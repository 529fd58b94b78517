//go:build full

package chart_test

import (
	"path/filepath"
	"testing"
)

// valueSets are the files of charts/ci, as Helm finds them.
func valueSets(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(charts, "ci", "*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("found %v in charts/ci: %v", files, err)
	}
	for i, f := range files {
		files[i] = "ci/" + filepath.Base(f)
	}
	return files
}
