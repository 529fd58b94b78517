package certs

import (
	"crypto/rand"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// freshToken returns 130 random bits in lower case. Each segment of the path of a Service's webhook
// must be a DNS label, or the API server refuses the configuration.
func freshToken() string { return strings.ToLower(rand.Text()) }

// tokens are the content of a Token's Secret. They have no clock: time is an argument.
type tokens struct {
	now    string // the newest
	before string // the one that it replaces; empty once no configuration has it any more
	seal   string // the key of seals, which is part of no path
}

// The entries of the Secret.
const (
	tokenKey  = "token"
	beforeKey = "before"
	sealKey   = "seal"
)

// stage is how far a replacement is, as this process has seen it: clocks of others do not count.
type stage struct {
	since   time.Time // when now was first seen
	written time.Time // when it was first seen in all webhook configurations; zero if not yet
}

// next returns what the tokens ought to be, and which of them to write, if written are in the
// webhook configurations.
func (t tokens) next(at time.Time, s stage, wait time.Duration, written []string) (want tokens, write string) {
	settled := !at.Before(s.since.Add(wait))
	want = t
	if t.seal == "" { // older Secrets have none
		want.seal = freshToken()
	}
	switch {
	case t.now == "":
		want.now = freshToken()
		if i := slices.IndexFunc(written, usable); i >= 0 {
			want.before, settled = written[i], false
		}
	case t.before != "" && !s.written.IsZero() && !at.Before(s.written.Add(wait)):
		want.before = ""
	}
	if !settled && want.before != "" && slices.Contains(written, want.before) {
		return want, want.before // processes that serve may not know the new one yet
	}
	return want, want.now
}

// everywhere reports whether no other token is written.
func (t tokens) everywhere(written []string) bool {
	return !slices.ContainsFunc(written, func(w string) bool { return w != t.now })
}

// take reports whether a token may be in the webhook configurations, in constant time.
func (t tokens) take(token string) bool {
	equal := func(known string) bool {
		return known != "" && subtle.ConstantTimeCompare([]byte(token), []byte(known)) == 1
	}
	return equal(t.now) || equal(t.before)
}

func (t tokens) data() map[string][]byte {
	d := map[string][]byte{tokenKey: []byte(t.now)}
	if t.before != "" {
		d[beforeKey] = []byte(t.before)
	}
	if t.seal != "" {
		d[sealKey] = []byte(t.seal)
	}
	return d
}

// tokensIn returns the tokens of a Secret, zero if it has none.
func tokensIn(s *corev1.Secret) tokens {
	t := tokens{string(s.Data[tokenKey]), string(s.Data[beforeKey]), string(s.Data[sealKey])}
	if !usable(t.now) {
		return tokens{}
	}
	if !usable(t.before) {
		t.before = ""
	}
	if !usable(t.seal) {
		t.seal = ""
	}
	return t
}

// usable reports whether a text can be a token: one segment of a path, and too long to be guessed.
func usable(token string) bool {
	const least, most = 20, 64
	return len(token) >= least && len(token) <= most && !slices.ContainsFunc([]byte(token), func(c byte) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
}
