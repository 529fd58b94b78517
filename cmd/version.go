package cmd

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/internal/version"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of weir, and of Kubernetes' client library in it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "weir %s (client-go %s, %s, %s/%s)\n",
				version.Weir(), moduleVersion("k8s.io/client-go"), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// tellBuild registers the metric that tells which component runs. Controllers and webhooks have
// most other metrics in common.
func tellBuild(component string) error {
	if err := metrics.Registry.Register(buildInfo(component)); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

func buildInfo(component string) prometheus.Gauge {
	running := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "1 in each process of Weir, by component: controller or webhook, and by version.",
		ConstLabels: prometheus.Labels{"component": component, "version": version.Weir()},
	})
	running.Set(1)
	return running
}

func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "unknown"
}
