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
		ca      string
		written []string
		want    tokens // FRESH is any other
		write   string
	}{
		"the first of all":               {tokens{}, stage{}, "a", nil, tokens{now: "FRESH", ca: "a"}, "FRESH"},
		"lost, and one is written":       {tokens{}, stage{}, "a", []string{oldToken}, tokens{now: "FRESH", before: oldToken, ca: "a"}, oldToken},
		"lost, and something is written": {tokens{}, stage{}, "a", []string{""}, tokens{now: "FRESH", ca: "a"}, "FRESH"},
		"made before there was a CA":     {tokens{now: oldToken}, here(0), "a", nil, tokens{now: oldToken, ca: "a"}, oldToken},
		"nothing to do":                  {tokens{now: oldToken, ca: "a"}, here(time.Hour), "a", []string{oldToken}, tokens{now: oldToken, ca: "a"}, oldToken},
		"somebody wrote something else":  {tokens{now: oldToken, ca: "a"}, here(time.Hour), "a", []string{oldToken, "x"}, tokens{now: oldToken, ca: "a"}, oldToken},
		"a new CA":                       {tokens{now: oldToken, ca: "a"}, here(time.Hour), "b", []string{oldToken}, tokens{now: "FRESH", before: oldToken, ca: "b"}, oldToken},
		"a new CA, and none is written":  {tokens{now: oldToken, ca: "a"}, here(time.Hour), "b", nil, tokens{now: "FRESH", before: oldToken, ca: "b"}, "FRESH"},
		"not settled":                    {tokens{now: newToken, before: oldToken, ca: "b"}, here(settle - 1), "b", []string{oldToken}, tokens{now: newToken, before: oldToken, ca: "b"}, oldToken},
		"settled":                        {tokens{now: newToken, before: oldToken, ca: "b"}, here(settle), "b", []string{oldToken}, tokens{now: newToken, before: oldToken, ca: "b"}, newToken},
		"half of them written":           {tokens{now: newToken, before: oldToken, ca: "b"}, here(time.Hour), "b", []string{oldToken, newToken}, tokens{now: newToken, before: oldToken, ca: "b"}, newToken},
		"written, and not for long":      {tokens{now: newToken, before: oldToken, ca: "b"}, stage{ago(time.Hour), ago(settle - 1)}, "b", []string{newToken}, tokens{now: newToken, before: oldToken, ca: "b"}, newToken},
		"written for long":               {tokens{now: newToken, before: oldToken, ca: "b"}, stage{ago(time.Hour), ago(settle)}, "b", []string{newToken}, tokens{now: newToken, ca: "b"}, newToken},
		"another CA meanwhile waits":     {tokens{now: newToken, before: oldToken, ca: "b"}, here(time.Hour), "c", []string{oldToken}, tokens{now: newToken, before: oldToken, ca: "b"}, newToken},
	} {
		want, write := c.have.next(at, c.stage, settle, c.ca, c.written)
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
	for token, want := range map[string]bool{newToken: true, oldToken: true, "": false, newToken[1:]: false, newToken + "n": false, "delete": false} {
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
		"nothing":               {nil, tokens{}},
		"one":                   {map[string]string{tokenKey: newToken}, tokens{now: newToken}},
		"all":                   {map[string]string{tokenKey: newToken, beforeKey: oldToken, alongsideKey: "a", sealKey: sealing}, tokens{newToken, oldToken, "a", sealing}},
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
	token := NewToken(TokenOptions{Config: b.api.Config(), Namespace: "weir", Name: "path", Make: make, Log: logr.Discard()})
	go func() { _ = token.Start(b.ctx) }() // it ends with the test
	synctest.Wait()
	return token
}

// after lets time pass, while the webhook configurations are written every 15 s, and whoever serves
// must take what is in them at all times.
func (b *bearers) after(d time.Duration, ca *madeCA) {
	b.Helper()
	for end := time.Now().Add(d); ; <-time.After(time.Second) {
		synctest.Wait()
		for _, w := range b.written {
			if !b.server.Takes(w) {
				b.Fatalf("what is written is not taken")
			}
		}
		next, err := b.writer.Next(b.ctx, ca.pem, b.written)
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

func TestTokenFollowsTheCA(t *testing.T) {
	withTokens(t, func(b *bearers) {
		one, two := makeCA(time.Now(), time.Hour), makeCA(time.Now(), time.Hour)
		b.after(time.Second, one)
		first := b.is()
		b.after(time.Hour, one)
		if b.is() != first {
			t.Error("it changes by itself")
		}
		b.after(20*time.Second, two)
		if b.is() != first {
			t.Error("a new one is written before all can know it")
		}
		b.after(20*time.Second, two)
		second := b.is()
		if second == first || !b.server.Takes(first) {
			t.Error("a new CA brings a new token; the old one is taken as long as API servers may use it")
		}
		// Processes that begin now know both.
		if late := b.begin(false); !late.Takes(first) || !late.Takes(second) {
			t.Error("a process that begins in the middle does not take both")
		}
		b.after(time.Minute, two)
		if b.is() != second || b.server.Takes(first) {
			t.Error("the old one is taken for ever")
		}
	})
}

func TestTokenWhoseSecretIsLostIsReplaced(t *testing.T) {
	withTokens(t, func(b *bearers) {
		ca := makeCA(time.Now(), time.Hour)
		b.after(time.Second, ca)
		first := b.is()
		b.after(time.Minute, ca)
		b.api.Remove("secrets/weir/path")
		b.after(time.Second, ca)
		if !b.server.Takes(first) || !b.begin(false).Takes(first) {
			t.Error("the one that is written is not taken any more")
		}
		b.after(2*time.Minute, ca)
		if b.is() == first || b.server.Takes(first) {
			t.Error("whoever deletes the Secret wants another token")
		}
	})
}

func TestSecretWithoutATokenIsFixed(t *testing.T) {
	withTokens(t, func(b *bearers) {
		ca := makeCA(time.Now(), time.Hour)
		b.after(time.Second, ca)
		b.api.Put("secrets", "{apiVersion: v1, kind: Secret, metadata: {name: path, namespace: weir}, data: {token: "+base64.StdEncoding.EncodeToString([]byte("x"))+"}}")
		b.after(time.Second, ca)
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
		ca := makeCA(time.Now(), time.Hour)
		if _, err := server.Next(ctx, ca.pem, nil); err == nil || err.Error() != "waiting for Secret weir/path" {
			t.Errorf("error %v", err)
		}
		if b.api.Get("secrets/weir/path") != nil {
			t.Error("it has made the Secret")
		}
		cancel()
		synctest.Wait()
	})
}

func TestTokenInMemory(t *testing.T) {
	ca := makeCA(time.Now(), time.Hour)
	token := NewToken(TokenOptions{Log: logr.Discard()})
	token.Remember("delete") // of a path without a token
	token.Remember(oldToken)
	if !token.Takes(oldToken) || token.Takes("delete") || token.Takes(newToken) {
		t.Error("until another is written, the one that is written is taken")
	}
	next, err := token.Next(t.Context(), ca.pem, []string{oldToken})
	if err != nil || next == oldToken || !token.Takes(next) || !token.Takes(oldToken) {
		t.Errorf("%s, %v", next, err)
	}
	if again, err := token.Next(t.Context(), ca.pem, []string{next}); err != nil || again != next {
		t.Errorf("then %s, %v", again, err)
	}
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
