package controller

import "errors"

// Enforced returns nil if readiness need not wait for the webhook, and otherwise why it waits. A
// leader is ready once the API server has called the webhook and got an answer, once. What is seen
// later shows in conditions, a metric and an alert, and does not end readiness.
//
// Nothing waits for a leader to be ready, so the wait ends as soon as the webhook is reached:
//   - A leader works before it is ready: it makes the certificate and the token, and writes the
//     webhook configurations, also without a policy. Pods of the webhook wait for these, and not for
//     the leader's readiness.
//   - A rollout does not wait for the Lease. A new replica follows while the old one leads, so it is
//     ready once it has seen that one renew the Lease, and the old one ends; also if there is only
//     one replica. An old leader that is not ready is the first to end. A replica that has seen no
//     leader may be the next leader: it is not ready before it leads.
//   - In replace mode the leader waits for the end of another collector, which may never come: it is
//     ready meanwhile, and enforces nothing.
//
// A process that serves the webhook itself must not call this: its Service would send it nothing
// before it is ready.
func (c *Controller) Enforced() error {
	if c.enforced == nil {
		return nil
	}
	if !c.began.Load() {
		if c.options.Lease != nil && c.options.Lease.Renewed() {
			return nil
		}
		return errNoLeader
	}
	if c.canary != nil && c.canary.Waits() {
		return nil
	}
	if err := c.enforced.Reached(); err == nil || c.leads.Load() {
		return err
	}
	return errNotBegun
}

var errNoLeader = errors.New("no leader is known: this replica does not lead yet, and has not seen another one " +
	"renew the leader's Lease")

var errNotBegun = errors.New("this replica leads and has not begun to work: it waits until every kind is listed, " +
	"and in replace mode until it is known that no other garbage collector works")
