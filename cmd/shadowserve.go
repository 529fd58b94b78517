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

// maxShadowLate bounds --shadow-late: a difference that is reported later is of no help.
const maxShadowLate = time.Hour

// checkShadow returns what is wrong with the flags of shadow mode.
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

// shadowPage returns the handler of report.Path at the metrics port. If that port authenticates no
// client, at least pages in browsers are kept out.
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

// listenLocally listens at the address that kubectl weir shadow asks, or at another port if that is
// taken: a machine may run several. It is a loopback address, because clients are not
// authenticated.
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

// serveLocally serves the report to programs on this machine, and to users who may forward a port
// of the pod.
func (m *management) serveLocally(l net.Listener) {
	mux := http.NewServeMux()
	mux.Handle(report.Path, controller.LocalOnly(m.shadow))
	server := &http.Server{Handler: mux, ReadTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	m.follow("shadow", func(ctx context.Context) error {
		defer context.AfterFunc(ctx, func() { _ = server.Close() })() // readers can ask again
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve kubectl weir shadow: %w", err)
		}
		return nil
	})
}
