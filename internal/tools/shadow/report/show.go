package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Path is where a weir in shadow mode serves its report to this machine, at Address.
const (
	Path    = "/shadow"
	Address = "127.0.0.1:8089"
)

// Most is how many bytes of a report are read. A weir in shadow mode writes less: it names a
// thousand differences at most, and cuts long names.
const Most = 16 << 20

// Read reads a report.
func Read(in io.Reader) (*Report, error) {
	limited := &io.LimitedReader{R: in, N: Most}
	var r Report
	d := json.NewDecoder(limited)
	err := d.Decode(&r)
	switch {
	case err != nil && limited.N <= 0:
		return nil, fmt.Errorf("it has more than %d MiB: it is not a report of shadow mode", Most>>20)
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it is cut off")
	case err != nil:
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more follows it: a report is read alone, so that what it shows is all there is")
	}
	if r.Since.IsZero() || r.At.IsZero() {
		return nil, errors.New("it is not a report of shadow mode")
	}
	return &r, nil
}

// Write writes a report in the form that Read reads.
func (r *Report) Write(out io.Writer) error {
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false) // escaped, a < would take six bytes
	return enc.Encode(r)
}

// The outputs of Show.
const (
	Text = "text"
	JSON = "json"
)

// CheckOutput returns an error for an output that Show does not have.
func CheckOutput(output string) error {
	if output != Text && output != JSON {
		return fmt.Errorf("--output %q: must be text or json", output)
	}
	return nil
}

// Show prints a report, and returns an error if there is a gate and it is closed.
func (r *Report) Show(out io.Writer, output string, gate Gate) error {
	var err error
	if output == JSON {
		err = r.Write(out)
	} else {
		err = r.Draw(out)
	}
	if err != nil || gate.Lasted == 0 {
		return err
	}
	if err := r.Gate(gate); err != nil {
		return fmt.Errorf("the gate is closed: %w", err)
	}
	return nil
}
