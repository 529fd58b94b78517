package weir

import (
	"encoding/json"
	"strings"
)

// Entry is a line of the log about an object.
type Entry struct {
	Message string `json:"msg"`
	Object  string `json:"object"`
	UID     string `json:"uid"`
	Why     string `json:"why"`
	Outcome string `json:"outcome"`
	Err     string `json:"err"`
}

// Entries are the lines of the log so far that are about objects.
func (p *Process) Entries() ([]Entry, error) {
	text, err := p.Output()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for line := range strings.Lines(text) {
		var e Entry
		// A panic, or a line that is being written, is not JSON.
		if json.Unmarshal([]byte(line), &e) == nil && e.Object != "" {
			entries = append(entries, e)
		}
	}
	return entries, nil
}
