package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/e2e/plane"
)

//go:embed story.txt
var story string

// step is a command, as a user types it, and the lines below it.
type step struct {
	again   bool // until it ends well
	command string
	below   []string
}

// teller runs the commands of the story.
type teller struct{ kubectl, plugin, kubeconfig string }

// tell plays the whole story. Every act checks what it claims.
func (t teller) tell(ctx context.Context) error {
	_, acts, _ := strings.Cut(story, "\n## ")
	for i, act := range strings.Split(acts, "\n## ") {
		title, text, _ := strings.Cut(act, "\n")
		fmt.Printf("\n── %d. %s\n", i+1, title)
		for _, s := range stepsOf(text) {
			if err := t.play(ctx, s); err != nil {
				return fmt.Errorf("act %d: %s: %w", i+1, s.command, err)
			}
		}
	}
	return nil
}

func stepsOf(text string) (steps []step) {
	for line := range strings.Lines(text) {
		switch line = strings.TrimRight(line, "\n"); {
		case strings.HasPrefix(line, "  "):
			last := &steps[len(steps)-1]
			last.below = append(last.below, line[len("  "):])
		case line != "":
			steps = append(steps, step{again: line[0] == '~', command: line[len("$ "):]})
		}
	}
	return steps
}

// play runs a command, and shows it and what it says.
func (t teller) play(ctx context.Context, s step) error {
	began, said := time.Now(), ""
	reads := strings.HasSuffix(s.command, "-f -")
	fmt.Printf("\n$ %s\n", s.command)
	if reads {
		fmt.Println("  " + strings.Join(s.below, "\n  "))
	}
	err := plane.Poll(ctx, time.Minute, func(ctx context.Context) (bool, error) {
		cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+t.kubeconfig,
			"PATH="+strings.Join([]string{filepath.Dir(t.kubectl), filepath.Dir(t.plugin), os.Getenv("PATH")}, ":"))
		if reads {
			cmd.Stdin = strings.NewReader(strings.Join(s.below, "\n"))
		}
		out, err := cmd.CombinedOutput()
		said = strings.TrimSpace(string(out))
		for _, words := range s.below {
			if err == nil && !reads && !strings.Contains(said, words) {
				err = fmt.Errorf("it does not say %q", words)
			}
		}
		if s.again {
			return err == nil, nil
		}
		return true, err
	})
	if said != "" {
		fmt.Println("  " + strings.ReplaceAll(said, "\n", "\n  "))
	}
	if took := time.Since(began).Round(time.Millisecond); s.again || took > 100*time.Millisecond {
		fmt.Printf("  (%s)\n", took)
	}
	return err
}
