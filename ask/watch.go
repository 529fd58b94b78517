package ask

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/weir-dev/weir/ask/insight"
	"github.com/weir-dev/weir/ask/snapshot"
)

const (
	// pause is between two drawings at least: many changes are one.
	pause = 250 * time.Millisecond
	// firstLists is how long a watch waits for kinds that have not been listed yet, before it draws
	// without them.
	firstLists = 10 * time.Second
)

// watchTree draws the tree of an object whenever it changes, until the object is gone.
func (a *asking) watchTree(cmd *cobra.Command, args []string, direction insight.Direction) error {
	if a.output != "" {
		return errors.New("--watch: draws text only; leave --output out")
	}
	ctx := cmd.Context()
	objects, err := a.objects(args)
	if err != nil {
		return err
	}
	if len(objects) != 1 {
		return fmt.Errorf("name one object: these are %d", len(objects))
	}
	o := objects[0]
	reader, err := a.reader()
	if err != nil {
		return err
	}
	follower, err := reader.Follow(ctx, o.Namespace)
	if err != nil {
		return unanswered(err)
	}
	defer follower.Close()
	out := cmd.OutOrStdout()
	w := &watching{asking: a, follower: follower, out: out, style: a.style(out)}
	return w.run(ctx, o, direction)
}

// watching draws what a Follower knows.
type watching struct {
	*asking
	follower *snapshot.Follower
	out      io.Writer
	style    insight.Style
	drawn    string // last
}

func (w *watching) run(ctx context.Context, o *resource.Info, direction insight.Direction) error {
	listing, stop := context.WithTimeout(ctx, firstLists)
	w.follower.Listed(listing)
	stop()
	for ctx.Err() == nil {
		_, further := w.follower.Changed()
		gone, err := w.draw(o, whole(o).GetUID(), direction)
		if gone || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-further:
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
	return nil // Ctrl-C is how it ends
}

// draw draws the tree if it is another one by now.
func (w *watching) draw(o *resource.Info, uid types.UID, direction insight.Direction) (gone bool, err error) {
	var text strings.Builder
	world, err := w.follower.World(o.Namespace)
	if err != nil {
		return false, err
	}
	if roots := world.Tree(uid, direction, time.Now()); len(roots) > 0 {
		if err := insight.DrawTree(&text, ageless(roots), w.style); err != nil {
			return false, err
		}
	} else if gone = !world.Unreadable(o.Mapping.Resource.GroupResource()); gone {
		fmt.Fprintf(&text, "%s is gone.\n", infoOf(o))
	}
	var missing strings.Builder
	w.unread(&missing, world)
	text.WriteString(w.style.Fit(missing.String()))
	if text.String() == w.drawn {
		return gone, nil
	}
	w.drawn = text.String()
	before := "---\n" // as between documents: what reads a pipe tells drawings apart
	if w.style.Colour {
		before = "\x1b[H\x1b[2J" // a screen shows the last one only
	}
	_, err = io.WriteString(w.out, before+w.drawn)
	return gone, err
}

// ageless are trees without ages: time alone is no change.
func ageless(roots []*insight.Node) []*insight.Node {
	for _, n := range roots {
		n.Age = ""
		ageless(n.Dependents)
		ageless(n.Content)
	}
	return roots
}
