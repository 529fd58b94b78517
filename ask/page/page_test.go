package page

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// mostCompressed is how large all of the page may be, compressed.
const mostCompressed = 100 << 10

// TestAssets: the page is small, each file has a type, and nothing is loaded from anywhere else.
func TestAssets(t *testing.T) {
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	elsewhere := regexp.MustCompile(`(?:src|href|from|import|url)\s*[=(]?\s*["'(](?:https?:)?//`)
	files := 0
	err := fs.WalkDir(assets, "assets", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := fs.ReadFile(assets, path)
		if err != nil {
			return err
		}
		if _, err := z.Write(data); err != nil {
			return err
		}
		if contentTypes[path[strings.LastIndex(path, "."):]] == "" {
			t.Errorf("%s has no type", path)
		}
		if at := elsewhere.Find(data); at != nil {
			t.Errorf("%s loads something from elsewhere: %s", path, at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if files < 10 || compressed.Len() > mostCompressed {
		t.Errorf("%d files of %d bytes compressed, want at least 10 of at most %d", files, compressed.Len(), mostCompressed)
	}
}
