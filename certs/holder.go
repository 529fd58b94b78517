package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/weir-dev/weir/controller/await"
)

// material is what a source holds at one time. What is not there is nil, and the errors say why.
type material struct {
	cas   []*x509.Certificate
	chain []*x509.Certificate // of the certificate, whether or not there is a key to it
	pair  *tls.Certificate

	whyNoBundle, whyNoPair error
}

// parse reads the three entries that files and Secrets have. where names the place in messages.
func parse(where string, crt, key, ca []byte) material {
	m := material{whyNoPair: errorIn(where, certKey+" and "+keyKey, "are not there")}
	if len(crt) > 0 {
		var err error
		if m.chain, err = parseCerts(crt); err != nil {
			m.whyNoPair = errorIn(where, certKey, err.Error())
		}
	}
	switch {
	case m.chain != nil && len(key) > 0:
		pair, err := tls.X509KeyPair(crt, key)
		if err != nil {
			m.whyNoPair = errorIn(where, certKey+" and "+keyKey, "are not a pair: "+err.Error())
			m.chain = nil // the key may belong to another one
		} else {
			m.pair, m.whyNoPair = &pair, nil
		}
	case m.chain != nil:
		m.whyNoPair = errorIn(where, keyKey, "is not there")
	}
	m.cas, m.whyNoBundle = parseBundle(where, ca, m.chain)
	return m
}

func parseBundle(where string, ca []byte, chain []*x509.Certificate) ([]*x509.Certificate, error) {
	if len(ca) > 0 {
		cas, err := parseCerts(ca)
		if err != nil {
			return nil, errorIn(where, caKey, err.Error())
		}
		return cas, nil
	}
	if len(chain) == 0 {
		return nil, errorIn(where, caKey, "is not there")
	}
	if top := chain[len(chain)-1]; selfSigned(top) {
		return []*x509.Certificate{top}, nil
	}
	return nil, errorIn(where, caKey, "is not there, and the last certificate of "+certKey+
		" is not self-signed: add the CA that signed it, or the API server cannot know the webhook")
}

func errorIn(where, what, wrong string) error {
	return errors.New(where + ": " + what + ": " + wrong)
}

// holder serves a rotation: callers read it while the source's goroutine changes it.
type holder struct {
	log     logr.Logger
	reports reporter

	mu       sync.RWMutex
	rotation rotation
	bundle   []byte
	changed  await.Change // when bundle changes
	noBundle error        // while bundle is empty
	noPair   error        // while nothing is served
}

func newHolder(log logr.Logger, notYet error) holder {
	return holder{
		log: log, reports: reporter{log: log}, rotation: rotation{settle: settle},
		noBundle: notYet, noPair: notYet,
	}
}

// take applies what was found. A zero material only lets time pass.
func (h *holder) take(now time.Time, m material) {
	h.mu.Lock()
	if m.cas != nil {
		h.rotation.trust(now, m.cas)
	}
	if m.chain != nil {
		h.rotation.note(m.chain)
	}
	first := h.rotation.serving == nil
	if m.pair != nil {
		h.rotation.offer(m.pair)
	}
	switched := h.rotation.turn(now) || first && h.rotation.serving != nil
	serving, next, why := h.rotation.serving, h.rotation.next, ""
	if next != nil {
		why = h.rotation.whyNot(now)
	}
	if m.whyNoBundle != nil {
		h.noBundle = m.whyNoBundle
	}
	if m.whyNoPair != nil {
		h.noPair = m.whyNoPair
	}
	known := h.rotation.known()
	changed := h.publishLocked()
	h.mu.Unlock()

	// Logs are written without the lock, for which a handshake may be waiting.
	if switched {
		h.log.Info("serving a new certificate", "expires", serving.Leaf.NotAfter)
	}
	if changed {
		h.log.Info("the CA bundle has changed")
	}
	if why == waitsForCA {
		why = ""
	}
	h.reports.when(why != "", "serve the new certificate", why)
	h.reports.when(!known, "serve a certificate that the API server knows",
		"no CA of the bundle has signed it: requests of the API server fail")
}

func (h *holder) publishLocked() (changed bool) {
	bundle := h.rotation.bundle()
	if bytes.Equal(bundle, h.bundle) {
		return false
	}
	h.bundle = bundle
	h.changed.Notify()
	return true
}

// Remember implements Source. It trusts the CAs of an earlier bundle for another day.
func (h *holder) Remember(bundle []byte) error {
	before, err := parseCerts(bundle)
	if err != nil {
		return fmt.Errorf("remember an earlier CA bundle: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.rotation.remember(time.Now(), before)
	h.rotation.turn(time.Now())
	h.publishLocked()
	return nil
}

func (h *holder) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.rotation.serving == nil {
		return nil, h.noPair
	}
	return h.rotation.serving, nil
}

func (h *holder) Bundle() ([]byte, error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if len(h.bundle) == 0 {
		return nil, h.noBundle
	}
	return h.bundle, nil
}

func (h *holder) Changed() <-chan struct{} {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.changed.Next()
}

// Expiry implements Source.
func (h *holder) Expiry() (time.Time, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.rotation.serving == nil {
		return time.Time{}, false
	}
	return h.rotation.serving.Leaf.NotAfter, true
}
