package certs

import (
	"crypto/tls"
	"errors"
	"time"

	"github.com/go-logr/logr"
)

// teller logs what is wrong once for as long as it lasts: sources try again every second or two. It belongs to one
// goroutine.
type teller struct {
	log  logr.Logger
	last map[string]string // by what was tried: what is wrong with it
}

// tell logs err unless it was the last about the same, and the end of an error.
func (t *teller) tell(what string, err error) {
	if err == nil {
		if _, ok := t.last[what]; ok {
			delete(t.last, what)
			t.log.Info("this works again: " + what)
		}
		return
	}
	if t.last[what] == err.Error() {
		return
	}
	if t.last == nil {
		t.last = map[string]string{}
	}
	t.last[what] = err.Error()
	t.log.Error(err, "cannot "+what+"; trying again")
}

func (t *teller) when(wrong bool, what, why string) {
	if wrong {
		t.tell(what, errors.New(why))
	} else {
		t.tell(what, nil)
	}
}

// expired tells of a certificate that is served for want of a better one.
func (t *teller) expired(now time.Time, serving *tls.Certificate) {
	t.when(serving != nil && !now.Before(serving.Leaf.NotAfter), "serve a certificate that is valid",
		"it has expired, and there is no newer one: requests of the API server fail")
}
