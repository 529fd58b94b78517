package certs

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

var (
	oldToken = strings.Repeat("o", 26)
	newToken = strings.Repeat("n", 26)
)

func TestTokensThatAreTaken(t *testing.T) {
	both := holding(tokens{now: newToken, before: oldToken, since: time.Now()})
	for token, want := range map[string]bool{newToken: true, oldToken: true, "": false, newToken[1:]: false,
		newToken + "n": false, "delete": false} {
		if both.Takes(token) != want {
			t.Errorf("%q is taken: %t", token, !want)
		}
	}
	if holding(tokens{}).Takes("") || holding(tokens{now: newToken}).Takes("") {
		t.Error("no token is taken for one")
	}
}

func holding(have tokens) *Token {
	token := NewToken(TokenOptions{Log: logr.Discard()})
	token.have.Store(&have)
	return token
}

func TestUsableTokens(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		want  bool
	}{
		"one":                 {newToken, true},
		"nothing":             {"", false},
		"one too short":       {"secret", false},
		"one with a slash":    {newToken + "/", false},
		"one with a line end": {newToken + "\n", false},
		"too long a one":      {strings.Repeat("n", 65), false},
	} {
		if got := usable(c.token); got != c.want {
			t.Errorf("%s is usable: %t", name, got)
		}
	}
}

// bearers are processes with a Token each, on one API server and the clock of a bubble.
type bearers struct {
	*testing.T
	api     *apitest.Server
	ctx     context.Context //nolint:containedctx // the one of the test
	writer  *Token
	server  *Token
	written []string
}

func withTokens(t *testing.T, test func(*bearers)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &bearers{T: t, api: apitest.New(), ctx: ctx}
		b.server = b.begin(false)
		b.writer = b.begin(true)
		test(b)
		cancel()
		synctest.Wait()
	})
}

func (b *bearers) begin(make bool) *Token {
	token := NewToken(TokenOptions{Config: b.api.Config(), Namespace: "weir", Name: "path", Make: make,
		Log: logr.Discard()})
	go func() { _ = token.Start(b.ctx) }() // it ends with the test
	synctest.Wait()
	return token
}

// after lets time pass, while the webhook configurations are written every 15 s, and whoever serves
// must take what is in them at all times.
func (b *bearers) after(d time.Duration) {
	b.Helper()
	for end := time.Now().Add(d); ; <-time.After(time.Second) {
		synctest.Wait()
		for _, w := range b.written {
			if !b.server.Takes(w) {
				b.Fatalf("what is written is not taken")
			}
		}
		next, err := b.writer.Next()
		if err == nil {
			b.written = []string{next, next}
		}
		if !time.Now().Before(end) {
			return
		}
	}
}

func (b *bearers) is() string {
	b.Helper()
	synctest.Wait()
	if len(b.written) == 0 {
		b.Fatal("nothing is written")
	}
	return b.written[0]
}

func TestTokenWhoseSecretIsLostIsReplaced(t *testing.T) {
	withTokens(t, func(b *bearers) {
		b.after(time.Second)
		first := b.is()
		b.after(time.Hour)
		if b.is() != first {
			t.Error("it changes by itself")
		}
		b.api.Remove("secrets/weir/path")
		b.after(20 * time.Second)
		if b.is() != first {
			t.Error("a new one is written before all can know it")
		}
		b.after(20 * time.Second)
		second := b.is()
		if second == first || !b.server.Takes(first) {
			t.Error("the lost Secret brings a new token; the old one is taken as long as API servers may use it")
		}
		if late := b.begin(false); !late.Takes(second) {
			t.Error("a process that begins in the middle does not take the new one")
		}
		b.after(time.Minute)
		if b.is() != second || b.server.Takes(first) {
			t.Error("the old one is taken for ever")
		}
	})
}

// TestSecretWithoutATokenChangesNothing: a broken Secret is no reason to take no requests.
func TestSecretWithoutATokenChangesNothing(t *testing.T) {
	withTokens(t, func(b *bearers) {
		b.after(time.Second)
		first := b.is()
		b.api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: path, namespace: weir}, data: {token: "+
			base64.StdEncoding.EncodeToString([]byte("x"))+"}}")
		b.after(time.Second)
		if b.is() != first {
			t.Error("another token is written")
		}
	})
}

func TestServerWithoutASecretTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := &bearers{T: t, api: apitest.New(), ctx: ctx}
		server := b.begin(false)
		if server.Takes("") || server.Takes(oldToken) {
			t.Error("takes what nobody has given it")
		}
		if _, err := server.Next(); err == nil || err.Error() != "waiting for Secret weir/path" {
			t.Errorf("error %v", err)
		}
		if b.api.Get("secrets/weir/path") != nil {
			t.Error("it has made the Secret")
		}
		cancel()
		synctest.Wait()
	})
}

// TestTokensMayBeInThePathOfAService: the API server refuses webhook configurations whose path has
// other segments than DNS labels.
func TestTokensMayBeInThePathOfAService(t *testing.T) {
	for range 100 {
		if token := freshToken(); len(validation.IsDNS1123Label(token)) > 0 || !usable(token) {
			t.Fatalf("token %q: %v, usable: %t", token, validation.IsDNS1123Label(token), usable(token))
		}
	}
}

// The API server tells clients the token in errors about a webhook that it does not reach, so the
// token makes no seal.
func TestSealIsThatOfWhoKnowsTheKey(t *testing.T) {
	key, other := strings.Repeat("k", 26), strings.Repeat("x", 26)
	weir := holding(tokens{now: newToken, before: oldToken, seal: key})
	seal := func(have tokens) string {
		s, _ := holding(have).Seal("text")
		return s
	}
	for name, c := range map[string]struct {
		seal string
		want bool
	}{
		"one's own":                            {seal(*weir.have.Load()), true},
		"of a process with another token":      {seal(tokens{now: oldToken, seal: key}), true},
		"of who knows another key":             {seal(tokens{now: newToken, seal: other}), false},
		"with the token":                       {seal(tokens{now: newToken, seal: newToken}), false},
		"with the token before":                {seal(tokens{now: newToken, seal: oldToken}), false},
		"of before there was a key of its own": {seal(tokens{now: newToken}), false},
		"none":                                 {"", false},
		"half of one":                          {seal(*weir.have.Load())[:32], false},
		"the key itself":                       {key, false},
	} {
		if got := weir.Sealed("text", c.seal); got != c.want {
			t.Errorf("a seal %s is taken: %t", name, got)
		}
	}
	if weir.Sealed("texts", seal(*weir.have.Load())) {
		t.Error("the seal of another text is taken")
	}
	if _, ok := holding(tokens{now: newToken}).Seal("text"); ok || holding(tokens{now: newToken}).Sealed("text", "") {
		t.Error("who knows no key seals")
	}
	if strings.Contains(seal(*weir.have.Load()), key) {
		t.Error("the seal tells the key")
	}
}
