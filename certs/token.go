package certs

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-dev/weir/controller/await"
)

// TokenOptions are the options of a Token.
type TokenOptions struct {
	Config          *rest.Config
	Namespace, Name string // of the Secret
	// Make makes the Secret if there is none. Processes that only serve wait for it.
	Make bool
	Log  logr.Logger
}

// Token is the part of the webhook's URLs that only the webhook configurations hold. By it the
// webhook knows the API server, which shows a certificate only if its administrator configures one.
// It is in a Secret of its own, whatever the source of certificates. If the Secret is deleted,
// another token follows. All processes watch the Secret, so each knows both while one takes the
// other's place:
//
//	taken      old ────────────────────────┐ twice settle after the new one was seen
//	               new ──────────────────────────▶
//	written    old ────────┐
//	                       └ new, after settle ──▶
type Token struct {
	o       TokenOptions
	reports reporter // of Start's goroutine, as found is
	found   bool     // the Secret is there
	have    atomic.Pointer[tokens]
	changed await.Change // when have changes
}

// tokens are what this process knows. They never change, and stay when the Secret is lost.
type tokens struct {
	now    string
	seal   string    // the key of seals, which is part of no path
	before string    // what now has replaced; empty for nothing
	since  time.Time // when now was first seen: clocks of others do not count
}

// The entries of the Secret.
const (
	tokenKey = "token"
	sealKey  = "seal"
)

// NewToken returns a Token. Start follows its Secret.
func NewToken(o TokenOptions) *Token {
	o.Log = o.Log.WithValues("secret", o.Namespace+"/"+o.Name)
	t := &Token{o: o, reports: reporter{log: o.Log}}
	t.have.Store(&tokens{})
	return t
}

// Start follows the Secret until ctx ends.
func (t *Token) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(t.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Secret %s/%s: %w", t.o.Namespace, t.o.Name, err)
	}
	keep := func() {
		if t.o.Make && !t.found {
			t.reports.report("make the Secret of the webhook's token", t.make(ctx, client))
		}
	}
	keep()
	return followSecret(ctx, client, t.o.Namespace, t.o.Name, "the webhook's token", &t.reports, t.see, keep)
}

// make makes the Secret. It gets another token than a lost one, since that may have been deleted
// for it.
func (t *Token) make(ctx context.Context, client kubernetes.Interface) error {
	made, err := client.CoreV1().Secrets(t.o.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.o.Namespace, Name: t.o.Name,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "weir"}},
		Data: map[string][]byte{tokenKey: []byte(freshToken()), sealKey: []byte(freshToken())},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err) || ctx.Err() != nil:
		return nil // the watch shows what there is
	case err != nil:
		return fmt.Errorf("make Secret %s/%s: %w", t.o.Namespace, t.o.Name, err)
	}
	t.see(made)
	return nil
}

// see reads the Secret. If it is gone, or has no token, what is known stays as it is.
func (t *Token) see(found *corev1.Secret) {
	if t.found = found != nil; !t.found {
		return
	}
	before, fresh := t.have.Load(), tokens{now: string(found.Data[tokenKey]), seal: string(found.Data[sealKey])}
	wrong := !usable(fresh.now) || !usable(fresh.seal)
	t.reports.when(wrong, "read the Secret of the webhook's token", "it has no token, or no seal: delete it")
	switch {
	case wrong || fresh.now == before.now && fresh.seal == before.seal:
		return
	case fresh.now == before.now:
		fresh.before, fresh.since = before.before, before.since
	default:
		fresh.before, fresh.since = before.now, time.Now()
	}
	t.have.Store(&fresh)
	t.changed.Notify()
}

// Takes reports, in constant time, whether the webhook configurations may hold a token.
func (t *Token) Takes(token string) bool {
	equal := func(known string) bool {
		return known != "" && subtle.ConstantTimeCompare([]byte(token), []byte(known)) == 1
	}
	have := t.have.Load()
	return equal(have.now) || time.Since(have.since) < 2*settle && equal(have.before)
}

// Changed returns a channel that is closed when the tokens change.
func (t *Token) Changed() <-chan struct{} { return t.changed.Next() }

// Next returns the token to write into the webhook configurations: a new one when all processes
// that serve have had the time to see it.
func (t *Token) Next() (string, error) {
	have := t.have.Load()
	switch {
	case have.now == "":
		return "", errors.New("waiting for Secret " + t.o.Namespace + "/" + t.o.Name)
	case have.before != "" && time.Since(have.since) < settle:
		return have.before, nil
	}
	return have.now, nil
}

// Seal returns an HMAC-SHA256 of a text, by which processes that have the key know that one of them
// wrote it. The key is in the Secret of the token and, unlike the token, nowhere else. It returns
// false while the key is not known.
func (t *Token) Seal(text string) (seal string, ok bool) {
	key := t.have.Load().seal
	if key == "" {
		return "", false
	}
	m := hmac.New(sha256.New, []byte("weir seal\n"+key))
	m.Write([]byte(text)) // never fails
	return hex.EncodeToString(m.Sum(nil)), true
}

// Sealed reports whether a process that has the key sealed a text.
func (t *Token) Sealed(text, seal string) bool {
	want, ok := t.Seal(text)
	return ok && hmac.Equal([]byte(seal), []byte(want))
}

// freshToken returns 130 random bits in lower case. Each segment of the path of a Service's webhook
// must be a DNS label, or the API server refuses the configuration.
func freshToken() string { return strings.ToLower(rand.Text()) }

// usable reports whether a text can be a token: one segment of a path, and too long to be guessed.
func usable(token string) bool {
	const least, most = 20, 64
	return len(token) >= least && len(token) <= most && !slices.ContainsFunc([]byte(token), func(c byte) bool {
		return (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && (c < '0' || c > '9')
	})
}
