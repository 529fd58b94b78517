package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ownWords are words that mean something to Weir's authors only, or that say less than the subject of a sentence would. What users
// read has the words of the Kubernetes documentation.
var ownWords = map[string]*regexp.Regexp{
	"would also be deleted":                  regexp.MustCompile(`(?i)\bfalls? (along )?with\b|\blets? (\w+ )+fall\b|\bwhat (would )?falls?\b|\bfallen\b`),
	"add, or remove, the finalizer":          regexp.MustCompile(`(?i)\b(un-)?stamp(s|ed|ing)?\b`),
	"enforce the propagation":                regexp.MustCompile(`(?i)\bshap(e|es|ed|ing)\b|\banother course\b`),
	"release; remove the finalizer":          regexp.MustCompile(`(?i)\blets? go of\b|\blet go\b`),
	"verify":                                 regexp.MustCompile(`(?i)\bvouch(es)?\b`),
	"again":                                  regexp.MustCompile(`(?i)\banew\b`),
	"recently; in time":                      regexp.MustCompile(`(?i)\bof late\b|\bby and by\b`),
	"a user, a client, no controller, never": regexp.MustCompile(`(?i)\b(nobody|somebody)\b`),
	"fix":                                    regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`),
	"certificate rotation, CA rotation":      regexp.MustCompile(`(?i)\b(turnover|succession)\b`),
	"mismatched, unresolvable":               regexp.MustCompile(`(?i)\b(strays?|troubles?|odd)\b`),
	"recently deleted; tombstones":           regexp.MustCompile(`(?i)\b(tombs?|departed)\b`),
	"pending retry; best match; requeue":     regexp.MustCompile(`(?i)\b(parked|likest|nudge[sd]?)\b`),
}

// styleWords are what the style guide of the Kubernetes documentation does without: what is easy for one reader is not for another, abbreviations of
// Latin words are spelled out, and who "we" are is not known to a reader.
var styleWords = map[string]*regexp.Regexp{
	"nothing; what is easy is for the reader to say": regexp.MustCompile(`(?i)\b(simply|just|easy|easily|obviously|of course)\b`),
	"for example; that is; and so on; through":       regexp.MustCompile(`(?i)\b(e\.g\.|i\.e\.|etc\.|\bviz\b|\bvia\b)`),
	"Weir, or you":                   regexp.MustCompile(`(?i)\b(we|our|ours|let's)\b`),
	"nothing; orders need no please": regexp.MustCompile(`(?i)\bplease\b`),
}

// code is what stands in documents as it is: names of fields, metrics and tests, and what commands print.
var code = regexp.MustCompile("(?s)```.*?```|`[^`\n]*`|status\\.stamped|name: Stamped|stamped:|stamped is how many")

func TestUsersReadTheWordsOfKubernetes(t *testing.T) {
	seen := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch path = filepath.ToSlash(path); {
		case path == "docs/reference-behaviour.md": // another's words
			return nil
		case path == "README.md", path == "CHANGELOG.md", path == "DESIGN.md", path == "CONTRIBUTING.md", strings.HasPrefix(path, "docs/") && strings.HasSuffix(path, ".md"):
		case strings.HasPrefix(path, "charts/weir/tests/"):
			return nil
		case strings.HasPrefix(path, "charts/weir/") && slices.Contains([]string{".yaml", ".txt", ".tpl", ".json"}, filepath.Ext(path)):
		default:
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		plain := code.ReplaceAllStringFunc(string(text), func(s string) string { return strings.Repeat("\n", strings.Count(s, "\n")) })
		for i, line := range strings.Split(plain, "\n") {
			for _, words := range []map[string]*regexp.Regexp{ownWords, styleWords} {
				for say, word := range words {
					if found := word.FindString(line); found != "" {
						t.Errorf("%s:%d: %q: say %q", path, i+1, found, say)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 30 {
		t.Errorf("read %d files only", seen)
	}
}

// notPlain are parts of comments that are as they are: names of fields and what generators read.
var notPlain = regexp.MustCompile(`status\.stamped|\bstamped is how many|\+kubebuilder:\S+|"[^"]*"`)

// TestCommentsHaveTheWordsOfKubernetes: who changes the code reads the words that users read.
func TestCommentsHaveTheWordsOfKubernetes(t *testing.T) {
	seen := 0
	eachGoFileOf(t, everyModule, func(_, path string, _ []string) {
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range f.Comments {
			for _, comment := range group.List {
				seen++
				for say, word := range ownWords {
					if found := word.FindString(notPlain.ReplaceAllString(comment.Text, "")); found != "" {
						t.Errorf("%s: %q: say %q", files.Position(comment.Pos()), found, say)
					}
				}
			}
		}
	})
	if seen < 5000 {
		t.Errorf("read %d comments only", seen)
	}
}
