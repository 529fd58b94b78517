package cmd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// maxShadowLate is the most that --shadow-late may be: a difference that is told later is of no
// help.
const maxShadowLate = time.Hour

// checkShadow finds what is wrong with the flags of shadow mode.
func (f *collectorFlags) checkShadow() error {
	var errs []error
	if f.shadowLate < time.Second || f.shadowLate > maxShadowLate {
		errs = append(errs, fmt.Errorf("--shadow-late %s: must be between 1s and %s", f.shadowLate, maxShadowLate))
	}
	if f.shadowReport != "" && f.mode != modeShadow {
		errs = append(errs, errors.New("--shadow-report is for --mode shadow"))
	}
	return errors.Join(errs...)
}

// shadowPage is what the metrics port has at report.Path. Where it authenticates no client, pages
// in browsers are kept out at least.
func (m *management) shadowPage() http.Handler {
	switch {
	case m.shadow == nil:
		mode := m.leading.mode
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "this weir runs in "+mode+" mode and compares nothing: --mode shadow does", http.StatusNotFound)
		})
	case m.process.metricsSecure:
		return m.shadow
	}
	return controller.LocalOnly(m.shadow)
}

// listenLocally opens the address at which kubectl weir shadow asks, and another port where that is
// taken: a machine may run several. It is a loopback address, because who asks is not authenticated.
func listenLocally() (net.Listener, error) {
	l, err := net.Listen("tcp", report.Address)
	if err != nil {
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("serve kubectl weir shadow: %w", err)
	}
	return l, nil
}

// serveLocally adds what serves the report to programs of this machine, and to whoever may have a
// port of the pod forwarded.
func (m *management) serveLocally(l net.Listener) {
	mux := http.NewServeMux()
	mux.Handle(report.Path, controller.LocalOnly(m.shadow))
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	m.follow("shadow", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })() // whoever still reads can ask again
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve kubectl weir shadow: %w", err)
		}
		return nil
	})
}
