// Package certs is nothing but tests: Weir's certificates against a real API server, which calls
// webhooks that serve them, and against cert-manager's own controllers, which package certmanager
// runs.
package certs
