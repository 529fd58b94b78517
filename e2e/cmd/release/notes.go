package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// readNotes reads the release notes: what the changelog says of the version.
func (r *release) readNotes() error {
	changelog, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := section(string(changelog), r.version)
	r.notes = []byte(text)
	return err
}

// section is what is below the heading of a version.
func section(changelog, version string) (string, error) {
	heading := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + `(?:[ ,].*)?\n`).FindStringIndex(changelog)
	if heading == nil {
		return "", fmt.Errorf("CHANGELOG.md has no heading ## %s", version)
	}
	text, _, _ := strings.Cut(changelog[heading[1]:], "\n## ")
	return strings.TrimSpace(text) + "\n", nil
}
