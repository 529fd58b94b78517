package plane

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	pollEvery = 100 * time.Millisecond
	// readyWithin is far more than any part needs on a machine that does
	// something else as well; a part that fails ends, and is seen at once.
	readyWithin = 2 * time.Minute
)

// Poll asks until something holds: at once, and then less and less often, down to four times a
// second. What takes long may be noticed a little late, and many who wait side by side leave the
// machine to those that they wait for.
func Poll(ctx context.Context, atMost time.Duration, holds wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return wait.Backoff{Duration: 10 * time.Millisecond, Factor: 1.3, Steps: 20, Cap: 250 * time.Millisecond}.DelayFunc().Until(ctx, true, true, holds)
}

// await asks ready until it has no objection. It gives up as soon as c has
// ended, and says what c said last.
func (p *Plane) await(ctx context.Context, c *Child, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.Exited():
			return c.died()
		case <-p.stopping:
			return fmt.Errorf("wait for %s: the plane is stopping", c.Name)
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w: %w; its log ends with\n%s", c.Name, ctx.Err(), err, c.Tail(20))
		case <-tick.C:
		}
	}
}

// answers is a ready function: GET url is 200.
func answers(client *http.Client, url string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := get(ctx, client, url)
		return err
	}
}

func get(ctx context.Context, client *http.Client, url string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %.300s", url, resp.Status, body)
	}
	return string(body), err
}

// localClient trusts any certificate: kube-controller-manager and
// kube-scheduler make their own, and all that is asked is whether they live.
// Connections are not kept, because a probe is not repeated once it succeeds.
func localClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true},
		DisableKeepAlives: true,
	}}
}
