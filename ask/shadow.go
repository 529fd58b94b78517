package ask

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-dev/weir/controller/words"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// shadowTime bounds the reading of a report.
const shadowTime = 30 * time.Second

// shadowing is the flags of shadow.
type shadowing struct {
	gate        report.Gate
	url, output string
}

func shadowCommand() *cobra.Command {
	var s shadowing
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show what the cluster's Weir has found in shadow mode",
		Long: `Show what the cluster's Weir has found in shadow mode. It says how many decisions of Weir the
cluster's own collector carried out, how much later, and names each difference: what Weir would
have deleted or changed and the cluster did not, and what was deleted although Weir would have
kept it.

It asks a weir at an address of this machine, without credentials. Forward a port of the
cluster's controller first, or run weir controller --mode shadow here.

With --gate it fails unless Weir has compared for that long, sees all kinds, and found no
difference. Differences on purpose that release or keep an object do not count. Those that
delete one do, because replace mode deletes those objects: the gate names these differences, and
--accept NAME accepts all of that name.`,
		Example: `  kubectl -n weir-system port-forward deployment/weir-controller 8089
  kubectl weir shadow --gate 24h`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return err
			}
			return s.show(cmd.Context(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().DurationVar(&s.gate.Lasted, "gate", 0, "fail unless there was no difference for this long; 0: only show")
	cmd.Flags().StringArrayVar(&s.gate.Accept, "accept", nil, "with --gate: a difference on purpose for which Weir "+
		"may delete what the cluster keeps, by the name that is shown with it; may be repeated")
	cmd.Flags().StringVarP(&s.output, "output", "o", "text", "how it is printed: text or json")
	cmd.Flags().StringVar(&s.url, "url", "http://"+report.Address, "the address of a weir in shadow mode, as it logs it")
	return cmd
}

func (s *shadowing) check() error {
	errs := []error{s.gate.Check()}
	if s.output != "text" && s.output != "json" {
		errs = append(errs, fmt.Errorf("--output %q: must be text or json", s.output))
	}
	if u, err := url.Parse(s.url); err != nil || u.Scheme != "http" || u.Host == "" ||
		u.Path != "" && u.Path != "/" && u.Path != report.Path {
		errs = append(errs, fmt.Errorf("--url %q: must be http://HOST:PORT, such as http://%s", s.url, report.Address))
	}
	return errors.Join(errs...)
}

// show reads a report and prints it.
func (s *shadowing) show(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, shadowTime)
	defer stop()
	r, err := s.read(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("read the report: there is no answer after %s: %w", shadowTime, err)
	}
	if err != nil {
		return err
	}
	if s.output == "json" {
		err = r.Write(out)
	} else {
		err = r.Draw(out)
	}
	if err != nil || s.gate.Lasted == 0 {
		return err
	}
	if err := r.Gate(s.gate); err != nil {
		return fmt.Errorf("the gate is closed: %w", err)
	}
	return nil
}

// read reads the report of a weir, without credentials: whoever can create a pod in its place could
// collect them.
func (s *shadowing) read(ctx context.Context) (*report.Report, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	from := u.JoinPath("/").ResolveReference(&url.URL{Path: report.Path}).String()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w; does weir controller --mode shadow run there? Its port is "+
			"forwarded by: kubectl -n weir-system port-forward deployment/weir-controller 8089", from, err)
	}
	defer func() { _ = resp.Body.Close() }() // what was read counts
	if resp.StatusCode == http.StatusOK {
		r, err := report.Read(resp.Body)
		if err != nil {
			return nil, fmt.Errorf("read the report of %s: %w", from, err)
		}
		return r, nil
	}
	said, _ := io.ReadAll(io.LimitReader(resp.Body, 300)) // partial text is used
	err = fmt.Errorf("%s answers %d %s", from, resp.StatusCode, words.Printable(string(bytes.TrimSpace(said))))
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: it is no weir in shadow mode: set mode: shadow in the chart", err)
	}
	return nil, fmt.Errorf("%w; the log of weir may say why", err)
}
