package certs

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// The API server tells clients the token in errors about a webhook that it does not reach, so the
// token makes no seal.
func TestSealIsThatOfWhoKnowsTheKey(t *testing.T) {
	holder := func(have tokens) *Token {
		token := NewToken(TokenOptions{Log: logr.Discard()})
		token.have = have
		return token
	}
	key, other := strings.Repeat("k", 26), strings.Repeat("x", 26)
	weir := holder(tokens{now: newToken, before: oldToken, seal: key})
	seal := func(have tokens) string {
		s, _ := holder(have).Seal("text")
		return s
	}
	for name, c := range map[string]struct {
		seal string
		want bool
	}{
		"one's own":                            {seal(weir.have), true},
		"of a process with another token":      {seal(tokens{now: oldToken, seal: key}), true},
		"of who knows another key":             {seal(tokens{now: newToken, seal: other}), false},
		"with the token":                       {seal(tokens{now: newToken, seal: newToken}), false},
		"with the token before":                {seal(tokens{now: newToken, seal: oldToken}), false},
		"of before there was a key of its own": {seal(tokens{now: newToken}), false},
		"none":                                 {"", false},
		"half of one":                          {seal(weir.have)[:32], false},
		"the key itself":                       {key, false},
	} {
		if got := weir.Sealed("text", c.seal); got != c.want {
			t.Errorf("a seal %s is taken: %t", name, got)
		}
	}
	if weir.Sealed("texts", seal(weir.have)) {
		t.Error("the seal of another text is taken")
	}
	if _, ok := holder(tokens{now: newToken}).Seal("text"); ok || holder(tokens{now: newToken}).Sealed("text", "") {
		t.Error("who knows no key seals")
	}
	if strings.Contains(seal(weir.have), key) {
		t.Error("the seal tells the key")
	}
}
