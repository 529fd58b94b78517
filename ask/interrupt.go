package ask

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

// errInterrupted is what a command fails with that Ctrl-C has ended: what its requests made of that
// says nothing about the cluster.
var errInterrupted = errors.New("interrupted")

// interruptible has the context of a command end with Ctrl-C while it runs. A second Ctrl-C ends
// the process, as if there were none.
func interruptible(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
		defer stop()
		defer context.AfterFunc(ctx, stop)()
		cmd.SetContext(ctx)
		err := run(cmd, args)
		if err != nil && ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
}

// endWith has all requests of clients that are made from the flags end with a command: discovery,
// and what rests on it, take no context.
func (a *asking) endWith(cmd *cobra.Command) {
	a.flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper { return ending{cmd.Context, next} })
		return c
	}
}

// ending are requests that end with a context besides their own.
type ending struct {
	with func() context.Context
	next http.RoundTripper
}

func (e ending) RoundTrip(r *http.Request) (*http.Response, error) {
	with := e.with()
	if with == nil {
		return e.next.RoundTrip(r) // a command that is not run, but completed
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(with, cancel) //nolint:contextcheck // it ends with either
	done := func() {
		stop()
		cancel()
	}
	resp, err := e.next.RoundTrip(r.WithContext(ctx))
	if err != nil {
		done()
		return nil, err
	}
	resp.Body = endingBody{resp.Body, done}
	return resp, nil
}

// endingBody is read until it is closed, or the context of its request ends.
type endingBody struct {
	io.ReadCloser
	done func()
}

func (b endingBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}
