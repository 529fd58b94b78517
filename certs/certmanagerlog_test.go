package certs

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestTheLibrarysLog(t *testing.T) {
	log := func(verbosity int) (logr.Logger, *strings.Builder) {
		out := &strings.Builder{}
		return quietly(funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{Verbosity: verbosity})), out
	}
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "secrets"}, "ca", errors.New("changed meanwhile"))
	for name, c := range map[string]struct {
		say  func(logr.Logger)
		at   int
		want string
	}{
		"what it does is not said":        {func(l logr.Logger) { l.Info("works") }, 0, ""},
		"unless asked for":                {func(l logr.Logger) { l.Info("works") }, 1, `"level"=1 "msg"="works"`},
		"a conflict is no error":          {func(l logr.Logger) { l.Error(conflict, "ensure") }, 0, ""},
		"but can be seen":                 {func(l logr.Logger) { l.WithName("n").Error(conflict, "ensure") }, 1, `"level"=1 "msg"="ensure"`},
		"an error is":                     {func(l logr.Logger) { l.WithValues("k", "v").Error(errors.New("no"), "ensure") }, 0, `"msg"="ensure" "error"="no" "k"="v"`},
		"and what is said of it stays so": {func(l logr.Logger) { l.V(1).Info("detail") }, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			l, out := log(c.at)
			c.say(l)
			if got := out.String(); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("said %q, want %q", got, c.want)
			}
		})
	}
	quietly(logr.Discard()).Info("a log that goes nowhere is one, too")
}
