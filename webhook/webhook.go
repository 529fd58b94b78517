// Package webhook answers the API server's admission reviews: HTTP on the outside, policies.Set on the inside.
package webhook

import _ "github.com/go-chi/chi/v5"
