package live

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weir-dev/weir/policies"
)

// readEvery is how often files are read. A mounted ConfigMap changes by a swapped link, which
// polling always finds, and notifications do not.
const readEvery = 2 * time.Second

var suffixes = []string{".yaml", ".yml", ".json"}

// CheckDir returns an error if the files of a directory cannot be read.
func CheckDir(dir string) error {
	_, err := contents(dir)
	return err
}

type file struct {
	name string
	data []byte
}

// contents reads the files of a directory in the order of their names, but for those that begin
// with a dot.
func contents(dir string) ([]file, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read policy files: %w", err)
	}
	var out []file
	for _, e := range entries {
		if e.Name()[0] == '.' || !slices.Contains(suffixes, filepath.Ext(e.Name())) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			continue
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read policy files: %w", err)
		}
		out = append(out, file{path, data})
	}
	return out, nil
}

// parse parses files. One that is no longer valid, probably a slip of an edit, keeps its policies
// in good, which are likely meant to hold. nowGood are the valid files, and the earlier versions of
// those that are not.
func parse(
	files []file, good map[string][]policies.Source,
) (sources []policies.Source, problems []policies.Problem, nowGood map[string][]policies.Source) {
	nowGood = map[string][]policies.Source{}
	for _, f := range files {
		s, p := policies.Parse(f.name, f.data)
		before, was := good[f.name]
		switch {
		case len(p) == 0:
			nowGood[f.name] = s
		case was:
			s, nowGood[f.name] = before, before
			for i := range p {
				p[i].Message += "; what the file said before stays in force"
			}
		}
		sources, problems = append(sources, s...), append(problems, p...)
	}
	return sources, problems, nowGood
}

func same(a, b []file) bool {
	return slices.EqualFunc(a, b, func(x, y file) bool { return x.name == y.name && bytes.Equal(x.data, y.data) })
}

// followFiles reads the directory now, and every readEvery. A later change is applied once two
// reads agree, since a file that is written in place may be empty at one. A read that fails changes
// nothing.
func (s *State) followFiles(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	var last, seen []file // what is in force, and the last read
	var good map[string][]policies.Source
	first, failing := true, false
	for {
		var files []file
		var err error
		if s.options.Dir != "" {
			files, err = contents(s.options.Dir)
		}
		if err != nil && !failing {
			s.options.Log.Info("cannot read policy files: what was read before stays in force", "err", err.Error())
		}
		settled := first || !failing && same(files, seen)
		if failing, seen = err != nil, files; err == nil && settled && (first || !same(files, last)) {
			first, last = false, files
			var sources []policies.Source
			var problems []policies.Problem
			sources, problems, good = parse(files, good)
			s.mu.Lock()
			s.files, s.problems, s.read = sources, problems, true
			s.mu.Unlock()
			s.again()
		}
		if s.options.Dir == "" {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
