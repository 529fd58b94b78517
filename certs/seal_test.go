package certs

import (
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

func TestSealIsThatOfWhoKnowsTheToken(t *testing.T) {
	holder := func(have tokens) *Token {
		token := NewToken(TokenOptions{Log: logr.Discard()})
		token.have = have
		return token
	}
	old, both, next, stranger := holder(tokens{now: oldToken}), holder(tokens{now: newToken, before: oldToken}), holder(tokens{now: newToken}), holder(tokens{now: strings.Repeat("x", 26)})
	seal := func(token *Token) string {
		s, ok := token.Seal("text")
		if !ok {
			t.Fatal("it is not sealed")
		}
		return s
	}
	for name, c := range map[string]struct {
		reader *Token
		seal   string
		want   bool
	}{
		"one's own":                      {old, seal(old), true},
		"with the token before":          {both, seal(old), true},
		"with the next":                  {both, seal(next), true},
		"with one that is forgotten":     {next, seal(old), false},
		"with one that is not known yet": {old, seal(next), false},
		"a stranger's":                   {both, seal(stranger), false},
		"none":                           {both, "", false},
		"half of one":                    {both, seal(old)[:32], false},
		"no digits":                      {both, "seal", false},
		"the token itself":               {both, oldToken, false},
		"of who knows no token":          {holder(tokens{}), seal(old), false},
	} {
		if got := c.reader.Sealed("text", c.seal); got != c.want {
			t.Errorf("a seal %s is taken: %t", name, got)
		}
	}
	if both.Sealed("texts", seal(old)) {
		t.Error("the seal of another text is taken")
	}
	if _, ok := holder(tokens{}).Seal("text"); ok {
		t.Error("who knows no token seals")
	}
	if strings.Contains(seal(old), oldToken) {
		t.Error("the seal tells the token")
	}
}
