// Package certs is nothing but tests: Weir's certificates against a real API server, which calls
// webhooks that serve them. Package certmanager runs cert-manager's own controllers, for the stories.
package certs
