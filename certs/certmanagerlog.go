package certs

import (
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// quiet is the log of cert-manager's library as an operator wants to read it: what it does is V(1),
// like all that is well, and that another replica was faster is no error.
type quiet struct{ logr.LogSink }

func quietly(log logr.Logger) logr.Logger {
	if log.GetSink() == nil {
		return logr.Discard()
	}
	return logr.New(quiet{log.GetSink()})
}

// Init does nothing: the sink has been in use, and would take this for one more wrapper each time.
func (q quiet) Init(logr.RuntimeInfo) {}

func (q quiet) Enabled(level int) bool { return q.LogSink.Enabled(level + 1) }

func (q quiet) Info(level int, msg string, keysAndValues ...any) {
	q.LogSink.Info(level+1, msg, keysAndValues...)
}

func (q quiet) Error(err error, msg string, keysAndValues ...any) {
	if apierrors.IsConflict(err) {
		if q.Enabled(0) {
			q.Info(0, msg, append(keysAndValues, "err", err)...)
		}
		return
	}
	q.LogSink.Error(err, msg, keysAndValues...)
}

func (q quiet) WithValues(keysAndValues ...any) logr.LogSink {
	return quiet{q.LogSink.WithValues(keysAndValues...)}
}

func (q quiet) WithName(name string) logr.LogSink { return quiet{q.LogSink.WithName(name)} }
