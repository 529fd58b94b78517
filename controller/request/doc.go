// Package request makes the requests of the controller, with preconditions and deadlines, as many
// at once as the API server grants. It is the one place that decides what a refusal means, and
// which 404 says that an object is gone.
//
// The only lock is the limiter's, and nothing waits under it. The only goroutines are timers.
package request
