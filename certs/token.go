package certs

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	// Settle is how long a new token is accepted before it is written, 30 s if zero.
	Settle time.Duration
	Log    logr.Logger
}

// Token is the part of the webhook's URLs that only the webhook configurations hold. By it the
// webhook knows the API server, which shows a certificate only if its administrator configures one.
// It is in a Secret of its own, whatever the source of certificates. If the Secret is lost, another
// token follows:
//
//	taken      old ────────────────────────────────┐ the new one is written everywhere, and that has settled
//	               new ─────────────────────────────────────▶
//	written    old ────────┐
//	                       └ new, once settled ─────────────▶
type Token struct {
	o       TokenOptions
	reports reporter // of Start's goroutine

	mu      sync.Mutex
	client  kubernetes.Interface
	found   *corev1.Secret // nil if there is none
	have    tokens         // kept if the Secret is lost
	stage   stage
	changed await.Change // when have changes
}

// NewToken returns a Token. Start follows its Secret.
func NewToken(o TokenOptions) *Token {
	if o.Settle == 0 {
		o.Settle = settle
	}
	o.Log = o.Log.WithValues("secret", o.Namespace+"/"+o.Name)
	return &Token{o: o, reports: reporter{log: o.Log}}
}

// Start follows the Secret until ctx ends.
func (t *Token) Start(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(t.o.Config)
	if err != nil {
		return fmt.Errorf("make a client for Secret %s/%s: %w", t.o.Namespace, t.o.Name, err)
	}
	t.mu.Lock()
	t.client = client
	t.mu.Unlock()
	watch, err := watchSecret(ctx, client, t.o.Namespace, t.o.Name)
	if err != nil {
		return err
	}
	keep := func() {
		if t.o.Make && !t.kept() {
			t.reports.report("make the Secret of the webhook's token", t.make(ctx))
		}
	}
	keep()
	watch.follow(ctx, "the webhook's token", tryEvery, &t.reports, t.see, keep)
	return nil
}

func (t *Token) kept() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.found != nil
}

// make makes the Secret. It gets another token than a lost one, since that may have been deleted
// for it.
func (t *Token) make(ctx context.Context) error {
	t.mu.Lock()
	fresh := tokens{freshToken(), t.have.now, freshToken()}
	t.mu.Unlock()
	labels := map[string]string{"app.kubernetes.io/managed-by": "weir"}
	made, err := t.client.CoreV1().Secrets(t.o.Namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.o.Namespace, Name: t.o.Name, Labels: labels}, Data: fresh.data(),
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

// see reads the Secret. If it is gone, or has no token, the tokens stay as they are.
func (t *Token) see(found *corev1.Secret) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.found = found
	if found == nil {
		return
	}
	if in := tokensIn(found); in.now != "" {
		t.takeLocked(in)
	}
}

func (t *Token) takeLocked(fresh tokens) {
	if fresh == t.have {
		return
	}
	if fresh.now != t.have.now {
		t.stage = stage{since: time.Now()}
	}
	t.have = fresh
	t.changed.Notify()
}

// Takes reports whether the webhook configurations may hold a token.
func (t *Token) Takes(token string) bool {
	t.mu.Lock()
	have := t.have
	t.mu.Unlock()
	return have.take(token)
}

// Changed returns a channel that is closed when the tokens change.
func (t *Token) Changed() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed.Next()
}

// Next returns the token to write into the webhook configurations, which hold those that are
// written. It is for the one process that writes them, and moves a replacement on when it is time.
func (t *Token) Next(ctx context.Context, written []string) (string, error) {
	t.mu.Lock()
	client, found, have, now := t.client, t.found, t.have, time.Now()
	switch {
	case !have.everywhere(written):
		t.stage.written = time.Time{}
	case t.stage.written.IsZero():
		t.stage.written = now
	}
	stage := t.stage
	t.mu.Unlock()

	if found == nil {
		return "", errors.New("waiting for Secret " + t.o.Namespace + "/" + t.o.Name)
	}
	want, write := have.next(now, stage, t.o.Settle, written)
	if want == tokensIn(found) {
		return write, nil
	}
	s := found.DeepCopy()
	s.Data = want.data()
	s, err := client.CoreV1().Secrets(t.o.Namespace).Update(ctx, s, metav1.UpdateOptions{})
	if err != nil {
		return "", fmt.Errorf("write Secret %s/%s: %w", t.o.Namespace, t.o.Name, err)
	}
	t.see(s)
	return write, nil
}
