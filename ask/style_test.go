package ask

import (
	"os"
	"testing"
)

// TestColoursAreForTerminals: and for no user who does not want them.
func TestColoursAreForTerminals(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, c := range []struct {
		to            *os.File
		noColor, term string
		want          bool
	}{
		{terminal, "", "xterm", true},
		{terminal, "1", "xterm", false},
		{terminal, "", "dumb", false},
		{file, "", "xterm", false},
	} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := newAsking().style(c.to).Colour; got != c.want {
			t.Errorf("NO_COLOR=%q TERM=%q %s: colours %t, want %t", c.noColor, c.term, c.to.Name(), got, c.want)
		}
	}
}
