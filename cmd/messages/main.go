// Command messages prints the texts in the Go files of directories and in other files that are
// named: one a line, after its file and line. It is for a person who reviews all that Weir may say.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	for _, path := range os.Args[1:] {
		if err := messages(path); err != nil {
			fmt.Fprintln(os.Stderr, "messages:", err)
			os.Exit(1)
		}
	}
}

func messages(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return inText(path, said)
	}
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	for _, file := range files {
		if err == nil && !strings.HasSuffix(file, "_test.go") && !strings.HasPrefix(filepath.Base(file), "zz_") {
			err = inGo(file)
		}
	}
	return err
}

// The texts of alerts, of rules of resources (XValidation), and of charts that cannot be installed.
var (
	ruled = regexp.MustCompile(`\bXValidation:.*\bmessage=(.+)`)
	said  = regexp.MustCompile(`(?:\bsummary: |\bdescription: |\bfail (?:\(printf )?)(.+)`)
)

func inText(path string, what *regexp.Regexp) error {
	text, err := os.ReadFile(path)
	for i, line := range strings.Split(string(text), "\n") {
		if m := what.FindStringSubmatch(line); m != nil {
			fmt.Printf("%s:%d\t%s\n", path, i+1, m[1])
		}
	}
	return err
}

// A text has two words, or a word and a placeholder.
var words = regexp.MustCompile(`[[:alpha:]]{2}.* | .*[[:alpha:]]{2}`)

func inGo(path string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		return err
	}
	var visit func(n ast.Node) bool
	// literal returns the text of a string, or of a sum of strings, with … for what is no literal.
	literal := func(n ast.Expr) string {
		if basic, ok := n.(*ast.BasicLit); ok {
			if text, err := strconv.Unquote(basic.Value); err == nil {
				return text
			}
		} else {
			ast.Inspect(n, visit)
		}
		return "…"
	}
	visit = func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			return n.Tag == nil
		case *ast.BasicLit, *ast.BinaryExpr:
			text := ""
			for _, term := range terms(n.(ast.Expr)) {
				text += literal(term)
			}
			if words.MatchString(strings.TrimSpace(text)) {
				fmt.Printf("%s:%d\t%s\n", path, set.Position(n.Pos()).Line, strings.ReplaceAll(text, "\n", `\n`))
			}
			return false
		}
		return true
	}
	ast.Inspect(file, visit)
	return inText(path, ruled)
}

// terms returns the terms of a sum, or the two operands of another operation.
func terms(n ast.Expr) []ast.Expr {
	sum, ok := n.(*ast.BinaryExpr)
	if !ok {
		return []ast.Expr{n}
	}
	return append(terms(sum.X), terms(sum.Y)...)
}
