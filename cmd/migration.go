package cmd

import (
	"fmt"
	"strings"

	"github.com/weir-dev/weir/controller/beside"
)

// migration returns the Lease that kube-controller-manager waits for, too; nil without the flag.
func (f *collectorFlags) migration(b *begun) (*beside.Migration, error) {
	if f.migrationLease == "" {
		return nil, nil
	}
	namespace, name, _ := strings.Cut(f.migrationLease, "/") // checked before
	lock, err := f.lock(b.config, namespace, name, "weir_")
	if err != nil {
		return nil, fmt.Errorf("make a client for the migration Lease: %w", err)
	}
	return beside.NewMigration(lock, f.leaseDuration, b.log), nil
}
