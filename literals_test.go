package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// ownWordsOfMessages are private words, too. Documents may have some of them in a plain sense, messages need none.
var ownWordsOfMessages = map[string]*regexp.Regexp{
	"enforce the propagation":                      regexp.MustCompile(`(?i)\b(course|carriage|shapers?)\b`),
	"would also be deleted; cascades":              regexp.MustCompile(`(?i)\b(falls?|fallen|falling)\b`),
	"delete, release, remove the finalizer":        regexp.MustCompile(`(?i)\b(letting go|letgo)\b|\blets? ([\w%]+ ){0,3}go\b`),
	"present":                                      regexp.MustCompile(`(?i)\bsolid\b`),
	"blocking kinds; lookup; fix; notify, requeue": regexp.MustCompile(`(?i)\b(shaping|armings|looking|mends?|nudges?)\b`),
}

// noMessages are packages whose text no user reads.
var noMessages = map[string]string{
	"controller/clustertest":  "fixtures of tests",
	"controller/fixture":      "fixtures of tests",
	"controller/graph/script": "the grammar of scripts",
	"controller/graph/sim":    "the simulation, which prints scripts",
	"policies/apitest":        "fixtures of tests",
}

// wireNames are literals that have such a word, and have to keep it.
var wireNames = map[string]string{
	`json:"anew"`:              "a field of kubectl weir plan -o json",
	`json:"anew,omitempty"`:    "a field of kubectl weir plan -o json",
	`json:"stray,omitempty"`:   "a field of kubectl weir orphans -o json",
	`json:"falls,omitempty"`:   "a field of the cases of weir policy test",
	`json:"stamp,omitempty"`:   "a field of the cases of weir policy test",
	"stamp":                    "the same field, where it is compared",
	`json:"stamped,omitempty"`: "a field of a DeletionPolicy's status",
	"stamp.weir.dev":           "the name of an entry of the webhook configuration",
	"stamp-changes":            "the name of a match condition of that entry",
	"/stamp":                   "the path of that entry",
}

// TestMessagesHaveTheWordsOfKubernetes holds what the processes print, answer, log and write into objects to the words that documents
// are held to.
func TestMessagesHaveTheWordsOfKubernetes(t *testing.T) {
	seen, needed := 0, map[string]bool{}
	eachGoFile(t, func(dir, path string, _ []string) {
		path = filepath.ToSlash(path)
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			return
		}
		if noMessages[dir] != "" {
			needed[dir] = true
			return
		}
		for _, l := range literalsOf(t, path) {
			seen++
			for _, f := range privateWords(l.text) {
				if wireNames[l.text] != "" {
					needed[l.text] = true
				} else {
					t.Errorf("%s: %q in %.200q: say %q", l.at, f.word, l.text, f.say)
				}
			}
		}
	})
	for _, excuses := range []map[string]string{noMessages, wireNames} {
		for excuse := range excuses {
			if !needed[excuse] {
				t.Errorf("%q has no private word, and need not be excused", excuse)
			}
		}
	}
	if seen < 4000 {
		t.Errorf("read %d literals only", seen)
	}
}

type wording struct{ word, say string }

// privateWords are those of a text, and what it should say instead.
func privateWords(text string) (found []wording) {
	text = code.ReplaceAllString(text, "")
	for _, words := range []map[string]*regexp.Regexp{ownWords, ownWordsOfMessages} {
		for _, say := range slices.Sorted(maps.Keys(words)) {
			if word := words[say].FindString(text); word != "" {
				found = append(found, wording{word, say})
			}
		}
	}
	return found
}

type literal struct {
	at   token.Position
	text string
}

// literalsOf are the strings of a file, but for the paths of its imports. Tags of fields are strings, too.
func literalsOf(t *testing.T, path string) (texts []literal) {
	t.Helper()
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BasicLit:
			if n.Kind != token.STRING {
				break
			}
			text, err := strconv.Unquote(n.Value)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, literal{files.Position(n.Pos()), text})
		}
		return true
	})
	return texts
}

func TestPrivateWordsAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"somebody deletes it":                      true,
		"To let them go: kubectl weir":             true,
		"gave the deletion its course":             true,
		"Mend the policy":                          true,
		"objects would fall":                       true,
		"letGo":                                    true,
		"status.stamped says how far":              false,
		"the finalizer is removed":                 false,
		"the propagation is enforced, of a course": true,
		"41 objects would also be deleted":         false,
	} {
		if got := privateWords(text); len(got) > 0 != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
