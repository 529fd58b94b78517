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
	*asking
	gate     report.Gate
	pod, url string
	says     io.Writer // where it says which pod was asked, if there are several
}

func shadowCommand() *cobra.Command {
	s := &shadowing{asking: newAsking()}
	cmd := &cobra.Command{
		Use:   "shadow",
		Short: "Show what the cluster's Weir has found in shadow mode",
		Long: `Show what the cluster's Weir has found in shadow mode. It says how many decisions of Weir the cluster's own collector
carried out, how much later, and names each difference: what Weir would have deleted or changed and the cluster did not, and
what was deleted although Weir would have kept it.

It asks Weir's controller through a port-forward, for which you have to be allowed to list pods and to create
pods/portforward in the namespace of Weir. The pod is sent no credentials. With --url it asks a weir that runs on this
machine. The file that --shadow-report names is read by weir shadow.

With --gate it fails unless Weir has compared for that long, sees all kinds, and found no difference. Differences on purpose that
release or keep an object do not count. Those that delete one do, because replace mode deletes those objects: the gate names these
differences, and --accept NAME accepts all of that name. It names kinds that Weir cannot see in the same way.`,
		Example: `  kubectl weir shadow
  kubectl weir shadow --gate 24h
  kubectl weir shadow -n deletion            # where Weir is in another namespace
  kubectl weir shadow --url http://` + report.Address + `    # weir controller --mode shadow, on this machine`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.says = cmd.ErrOrStderr()
			if err := s.check(); err != nil {
				return err
			}
			return s.show(cmd.Context(), cmd.OutOrStdout())
		},
	}
	s.registerCluster(cmd)
	quiet(cmd)
	cmd.Flags().Lookup("namespace").Usage = "the namespace of Weir; default: " + weirNamespace
	cmd.Flags().DurationVar(&s.gate.Lasted, "gate", 0, "fail unless there was no difference for this long; 0: only show")
	cmd.Flags().StringArrayVar(&s.gate.Accept, "accept", nil, report.AcceptUsage)
	cmd.Flags().StringVarP(&s.output, "output", "o", report.Text, "how it is printed: text or json")
	cmd.Flags().StringVar(&s.pod, "pod", "", "the pod to ask; default: the one of Weir's controller that has run "+
		"for longest")
	cmd.Flags().StringVar(&s.url, "url", "", "ask a weir at this address, as it logs it, in place of a pod")
	cmd.MarkFlagsMutuallyExclusive("pod", "url")
	return cmd
}

func (s *shadowing) check() error {
	errs := []error{report.CheckOutput(s.output), s.gate.Check()}
	if u, err := url.Parse(s.url); s.url != "" && (err != nil || u.Scheme != "http" || u.Host == "" ||
		u.Path != "" && u.Path != "/" && u.Path != report.Path) {
		errs = append(errs, fmt.Errorf("--url %q: must be http://HOST:PORT, such as http://%s", s.url, report.Address))
	}
	return errors.Join(errs...)
}

// show reads a report and prints it.
func (s *shadowing) show(ctx context.Context, out io.Writer) error {
	ctx, stop := context.WithTimeout(ctx, shadowTime)
	defer stop()
	ask := s.askPod
	if s.url != "" {
		ask = s.askURL
	}
	r, err := ask(ctx)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("read the report: there is no answer after %s; try again, or read the file that --shadow-report "+
			"names in the pod: %w", shadowTime, err)
	}
	if err != nil {
		return err
	}
	return r.Show(out, s.output, r.At, s.gate) // r.At, not time.Now: the report is fresh, and the clocks may differ
}

// askURL reads the report of a weir at an address, without credentials.
func (s *shadowing) askURL(ctx context.Context) (*report.Report, error) {
	u, err := url.Parse(s.url)
	if err != nil {
		return nil, err
	}
	from := u.JoinPath("/").ResolveReference(&url.URL{Path: report.Path}).String()
	return reportAt(ctx, from, from, "does weir controller --mode shadow run there? It logs its address")
}

// reportAt reads the report at an address, without credentials. Errors name who was asked, and what
// to do if there is no answer.
func reportAt(ctx context.Context, address, from, silent string) (*report.Report, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	req.Close = true
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s does not answer: %w; %s", from, err, silent)
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
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, fmt.Errorf("%w: it is no weir in shadow mode, or one that is older than this command; set mode: "+
			"shadow in the chart, or update Weir", err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, fmt.Errorf("%w: it wants to know who you are; ask at the address that the log of weir tells", err)
	}
	return nil, fmt.Errorf("%w; the log of weir may say why", err)
}
