package certs

import (
	"context"
	"encoding/base64"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/internal/testkit/apitest"
)

var (
	oldToken = strings.Repeat("o", 26)
	newToken = strings.Repeat("n", 26)
	sealing  = strings.Repeat("s", 26)
)

func TestNextToken(t *testing.T) {
	const settle = 30 * time.Second
	ago := func(d time.Duration) time.Time { return at.Add(-d) }
	here := func(d time.Duration) stage { return stage{since: ago(d)} }
	for name, c := range map[string]struct {
		have    tokens
		stage   stage
		written []string
		want    tokens // FRESH is any other
		write   string
	}{
		"the first of all": {tokens{}, stage{}, nil, tokens{now: "FRESH"}, "FRESH"},
		"lost, and one is written": {tokens{}, stage{}, []string{oldToken}, tokens{now: "FRESH", before: oldToken},
			oldToken},
		"lost, and something is written": {tokens{}, stage{}, []string{""}, tokens{now: "FRESH"}, "FRESH"},
		"nothing to do": {tokens{now: oldToken}, here(time.Hour), []string{oldToken}, tokens{now: oldToken},
			oldToken},
		"somebody wrote something else": {tokens{now: oldToken}, here(time.Hour), []string{oldToken, "x"},
			tokens{now: oldToken}, oldToken},
		"not settled": {tokens{now: newToken, before: oldToken}, here(settle - 1), []string{oldToken},
			tokens{now: newToken, before: oldToken}, oldToken},
		"settled": {tokens{now: newToken, before: oldToken}, here(settle), []string{oldToken},
			tokens{now: newToken, before: oldToken}, newToken},
		"half of them written": {tokens{now: newToken, before: oldToken}, here(time.Hour), []string{oldToken, newToken},
			tokens{now: newToken, before: oldToken}, newToken},
		"written, and not for long": {tokens{now: newToken, before: oldToken}, stage{ago(time.Hour), ago(settle - 1)},
			[]string{newToken}, tokens{now: newToken, before: oldToken}, newToken},
		"written for long": {tokens{now: newToken, before: oldToken}, stage{ago(time.Hour), ago(settle)}, []string{newToken},
			tokens{now: newToken}, newToken},
	} {
		want, write := c.have.next(at, c.stage, settle, c.written)
		if !usable(want.seal) || want.seal == want.now {
			t.Errorf("%s: the key of seals is %q", name, want.seal)
		}
		want.seal = ""
		if c.want.now == "FRESH" && usable(want.now) && want.now != oldToken {
			if write == want.now {
				write = "FRESH"
			}
			want.now = "FRESH"
		}
		if want != c.want || write != c.write {
			t.Errorf("%s: %+v, write %s\nwant %+v, write %s", name, want, write, c.want, c.write)
		}
	}
}

func TestTokensThatAreTaken(t *testing.T) {
	both := tokens{now: newToken, before: oldToken}
	for token, want := range map[string]bool{newToken: true, oldToken: true, "": false, newToken[1:]: false,
		newToken + "n": false, "delete": false} {
		if both.take(token) != want {
			t.Errorf("%q is taken: %t", token, !want)
		}
	}
	if (tokens{}).take("") || (tokens{now: newToken}).take("") {
		t.Error("no token is taken for one")
	}
}

func TestTokensOfASecret(t *testing.T) {
	for name, c := range map[string]struct {
		data map[string]string
		want tokens
	}{
		"nothing": {nil, tokens{}},
		"one":     {map[string]string{tokenKey: newToken}, tokens{now: newToken}},
		"all": {map[string]string{tokenKey: newToken, beforeKey: oldToken, sealKey: sealing},
			tokens{newToken, oldToken, sealing}},
		"one that is too short": {map[string]string{tokenKey: "secret"}, tokens{}},
		"one with a slash":      {map[string]string{tokenKey: newToken + "/"}, tokens{}},
		"one with a line end":   {map[string]string{tokenKey: newToken + "\n"}, tokens{}},
		"too long a one":        {map[string]string{tokenKey: strings.Repeat("n", 65)}, tokens{}},
		"half a replacement":    {map[string]string{tokenKey: newToken, beforeKey: "x"}, tokens{now: newToken}},
	} {
		s := &corev1.Secret{Data: map[string][]byte{}}
		for k, v := range c.data {
			s.Data[k] = []byte(v)
		}
		got := tokensIn(s)
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		if again := tokensIn(&corev1.Secret{Data: got.data()}); again != got {
			t.Errorf("%s: written and read %+v", name, again)
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
		next, err := b.writer.Next(b.ctx, b.written)
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
		// Processes that begin now know both.
		if late := b.begin(false); !late.Takes(first) || !late.Takes(second) {
			t.Error("a process that begins in the middle does not take both")
		}
		b.after(time.Minute)
		if b.is() != second || b.server.Takes(first) {
			t.Error("the old one is taken for ever")
		}
	})
}

func TestSecretWithoutATokenIsFixed(t *testing.T) {
	withTokens(t, func(b *bearers) {
		b.after(time.Second)
		b.api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: path, namespace: weir}, data: {token: "+
			base64.StdEncoding.EncodeToString([]byte("x"))+"}}")
		b.after(time.Second)
		if late := b.begin(false); !late.Takes(b.is()) {
			t.Error("a process that begins now does not know it")
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
		if _, err := server.Next(ctx, nil); err == nil || err.Error() != "waiting for Secret weir/path" {
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
