//go:build !full

package e2e

// either returns the mode in which the n-th test is run of those that hold in either mode: they
// take turns. The full ring runs each in both.
func either(n int) []mode { return []mode{[]mode{replace, companion}[n%2]} }

// histories is how many a siege plays in each mode.
const histories = 30
