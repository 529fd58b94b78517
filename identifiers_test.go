package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// ownWordsOfCode are words of which an identifier is made that mean something to Weir's authors only, and what to say instead. Words that
// are plain English in most places (told, look, whole, again) are for whoever reads a change to judge.
var ownWordsOfCode = map[string]string{
	"fall": "cascade, AlsoDeleted", "falls": "cascade, Dependents", "fallen": "Counted, AlsoDeleted", "falling": "cascading",
	"stamp": "add the finalizer", "stamps": "add the finalizer", "stamped": "with the finalizer", "stamping": "adding", "stamper": "Writer", "unstamp": "remove the finalizer",
	"shape": "enforce", "shapes": "enforces", "shaped": "enforced", "shaper": "enforcer", "shaping": "enforcing", "course": "propagation", "carriage": "enforcement",
	"solid": "present", "let go": "orphaning, release", "trouble": "unresolvable, failing", "stray": "mismatched", "odd": "nonCanonical",
	"tomb": "tombstone", "tombs": "tombstones", "departed": "recentlyDeleted", "likest": "bestMatch", "parked": "pending retry",
	"turnover": "rotation", "succession": "rotation", "vouch": "verify", "vouches": "verifies", "essential": "metadataOnly", "essence": "metadata",
	"looking": "lookup", "asker": "evaluator", "spelled": "explicit", "wild": "wildcard", "anew": "again",
	"nudge": "requeue", "nudged": "requeued", "touched": "changed", "mend": "fix", "mended": "fixed",
	"world": "cluster", "worlds": "clusters", "bed": "fixture", "bubble": "fixture",
	"somebody": "a concrete subject", "nobody": "a concrete subject",
}

// identifiersThatStay have such a word, and why.
var identifiersThatStay = map[string]string{
	"Stamped":        "a field of a DeletionPolicy's status",
	"World":          "package insight's: what is known of a cluster, or of a namespace of one, by who asks, which is no cluster",
	"NewWorld":       "makes a World",
	"world":          "a World",
	"worlds":         "Worlds",
	"worldOf":        "makes a World, in tests",
	"namespaceWorld": "a World of one namespace",
}

// TestIdentifiersHaveTheWordsOfKubernetes: what is declared, in each module, tests and files too, is called as in the
// documentation.
func TestIdentifiersHaveTheWordsOfKubernetes(t *testing.T) {
	seen, needed := 0, map[string]bool{}
	eachGoFileOf(t, everyModule, func(_, path string, _ []string) {
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".go"), "_test")
		if strings.HasPrefix(base, "zz_generated") {
			return
		}
		if word := ownWordOf(base); word != "" && identifiersThatStay[base] == "" {
			t.Errorf("%s: say %s", path, ownWordsOfCode[word])
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range declared(f) {
			seen++
			word := ownWordOf(name.Name)
			switch {
			case word == "":
			case identifiersThatStay[name.Name] != "":
				needed[name.Name] = true
			default:
				t.Errorf("%s: %s: say %s", files.Position(name.Pos()), name.Name, ownWordsOfCode[word])
			}
		}
	})
	for _, stays := range slices.Sorted(maps.Keys(identifiersThatStay)) {
		if !needed[stays] {
			t.Errorf("%q is not declared, and need not be excused", stays)
		}
	}
	if seen < 20_000 {
		t.Errorf("read %d declarations only", seen)
	}
}

// declared are the names that a file declares: packages, types, functions, methods, fields, constants, variables, arguments.
func declared(f *ast.File) (names []*ast.Ident) {
	names = append(names, f.Name)
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok {
			names = append(names, fn.Name)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			names = append(names, n.Name)
		case *ast.ValueSpec:
			names = append(names, n.Names...)
		case *ast.Field:
			names = append(names, n.Names...)
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				names = append(names, idents(n.Lhs...)...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				names = append(names, idents(n.Key, n.Value)...)
			}
		}
		return true
	})
	return names
}

func idents(list ...ast.Expr) (names []*ast.Ident) {
	for _, x := range list {
		if name, ok := x.(*ast.Ident); ok {
			names = append(names, name)
		}
	}
	return names
}

// ownWordOf is the first private word of an identifier, or empty.
func ownWordOf(name string) string {
	words := wordsOf(name)
	for i, word := range words {
		if ownWordsOfCode[word] != "" {
			return word
		}
		if i > 0 && ownWordsOfCode[words[i-1]+" "+word] != "" {
			return words[i-1] + " " + word
		}
	}
	return ""
}

// wordsOf splits an identifier where a capital letter begins a word.
func wordsOf(name string) (words []string) {
	letters := []rune(name)
	begin := 0
	for i := range letters {
		before := i > 0 && (unicode.IsLower(letters[i-1]) || !unicode.IsLetter(letters[i-1]))
		after := i > 0 && i+1 < len(letters) && unicode.IsLower(letters[i+1])
		if i > begin && unicode.IsUpper(letters[i]) && (before || after) {
			words, begin = append(words, strings.ToLower(string(letters[begin:i]))), i
		}
	}
	return append(words, strings.ToLower(string(letters[begin:])))
}

func TestPrivateWordsOfIdentifiersAreFound(t *testing.T) {
	for name, want := range map[string]string{
		"fall": "fall", "whatFalls": "falls", "fallthroughs": "", "UIDsOfTombs": "tombs", "newWorld": "world", "letGo": "let go", "LetGone": "", "aNewCA": "", "listedAnew": "anew",
		"Stamped": "stamped", "timestamp": "", "timeStamp": "stamp", "shapeURL": "shape", "worldwide": "", "wildcard": "", "HTTPBed": "bed", "embedded": "", "": "",
	} {
		if got := ownWordOf(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}
