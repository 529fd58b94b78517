package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/weir-dev/weir/controller"
	"github.com/weir-dev/weir/controller/brake"
	"github.com/weir-dev/weir/policies"
	"github.com/weir-dev/weir/webhook"
)

// allControllers is the user of every controller of a kube-controller-manager that runs without
// --use-service-account-credentials.
const allControllers = "system:kube-controller-manager"

// brakeFlags are the flags of the brake. The controller has them, and so has the webhook, for the
// brake on another collector.
type brakeFlags struct {
	brake      brake.Limits
	brakeUsers []string
}

func (f *brakeFlags) register(fs *pflag.FlagSet) {
	f.brake = brake.DefaultLimits
	fs.IntVar(&f.brake.Most, "brake-most", f.brake.Most,
		"most objects that are deleted for owners that Weir did not see deleted: "+
			"of one kind within an hour, of all kinds within ten minutes, and no more than 500 where that is more than a "+
			"tenth of a kind; "+
			"more is held until a person decides (HeldCollection); 0 for no limit. In replace mode, and in companion mode "+
			"with --brake-users")
	fs.StringSliceVar(&f.brakeUsers, "brake-users", nil,
		"in companion mode: users (garbage collectors) whose deletes the webhook holds past these limits; "+
			policies.GarbageCollector+" is the built-in one where kube-controller-manager runs with "+
			"--use-service-account-credentials; default: none. Give the webhook the same flags")
}

func (f *brakeFlags) check() error {
	var errs []error
	if f.brake.Most < 0 {
		errs = append(errs, fmt.Errorf("--brake-most %d: must not be less than 0", f.brake.Most))
	}
	if slices.Contains(f.brakeUsers, "") {
		errs = append(errs, errors.New("--brake-users: must not have an empty name"))
	}
	errs = append(errs, checkUsers("--brake-users", f.brakeUsers))
	if slices.Contains(f.brakeUsers, allControllers) {
		errs = append(errs, fmt.Errorf("--brake-users %s: other controllers have that name, too, and delete what has "+
			"owners; run kube-controller-manager with --use-service-account-credentials, and name %s", allControllers,
			policies.GarbageCollector))
	}
	return errors.Join(errs...)
}

// holdsOthers reports whether the deletes of another garbage collector are held past the limits.
func (f *brakeFlags) holdsOthers() bool { return len(f.brakeUsers) > 0 && !f.brake.Off() }

// braking returns the users whose deletes are sent to the webhook for the brake.
func (f *brakeFlags) braking() []string {
	if !f.holdsOthers() {
		return nil
	}
	return f.brakeUsers
}

// guard returns the brake on another garbage collector, for a process that does not keep
// HeldCollections; nil if there is none.
func (f *brakeFlags) guard(b *begun, m *management, c *controller.Following) (webhook.Brake, error) {
	if !f.holdsOthers() {
		return nil, nil
	}
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("make a client for HeldCollections: %w", err)
	}
	held := c.NewBrake(brake.Options{Limits: f.brake, Beside: true, Client: client, Registry: metrics.Registry,
		Log: b.log.WithName("brake")})
	held.Begin()
	m.follow("held collections", func(ctx context.Context) error { held.Heed(ctx); return nil })
	return brake.NewGuard(held, c.Ready).Holds, nil
}
