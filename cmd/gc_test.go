package cmd

import "testing"

func TestControlIsASocketThatOnlyThisUserOpens(t *testing.T) {
	for _, control := range []string{"127.0.0.1:8080", "unix:", "weir.sock"} {
		f := gcFlags{control: control}
		_, err := f.socket()
		if want := `--control "` + control + `": must be unix:PATH`; err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
