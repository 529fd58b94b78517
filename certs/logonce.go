package certs

import (
	"errors"

	"github.com/go-logr/logr"
)

// reporter logs an error once for as long as it lasts: sources try again every few seconds. It is
// for one goroutine.
type reporter struct {
	log  logr.Logger
	last map[string]string // by what was tried: the last error
}

// report logs an error unless it was the last about the same, and logs when it is over.
func (t *reporter) report(what string, err error) {
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

func (t *reporter) when(wrong bool, what, why string) {
	if wrong {
		t.report(what, errors.New(why))
	} else {
		t.report(what, nil)
	}
}
