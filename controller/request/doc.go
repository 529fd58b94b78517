// Package request makes the requests of the controller, with preconditions and deadlines, as many
// at once as the API server grants, and says of each how it ended: what a refusal means, and which
// 404 says that an object is gone, is told here and nowhere else.
//
// The limiter has the one lock; no goroutine waits under it. There are no goroutines but timers.
package request
