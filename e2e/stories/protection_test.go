//go:build stories

package stories

import (
	"context"
	"regexp"
	"strings"
)

const definition = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {plural: PLURAL, kind: KIND}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
`

// define makes a kind, and removes it at the story's end.
func (s *story) define(plural, group, kind string) {
	s.Helper()
	s.apply(strings.NewReplacer("PLURAL", plural, "GROUP", group, "KIND", kind).Replace(definition))
	name := plural + "." + group
	s.Cleanup(func() {
		if out, err := kubectl(context.WithoutCancel(s.Context()), "delete", "crd", name, "--ignore-not-found", "--timeout=60s"); err != nil {
			s.Error(out)
		}
	})
	s.established(name)
	s.until("the kind is served", func(context.Context) error {
		_, err := s.kubectl("get", name)
		return err
	})
}

// protection: what takes much with it is refused, with what would be lost and the command that
// confirms it, which works.
func (s *story) protection() {
	s.weir()
	s.define("teams", "stories.weir.dev", "Team")
	s.apply("apiVersion: stories.weir.dev/v1\nkind: Team\nmetadata: {name: blue}\n")
	s.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: keys}\n")

	// Weir learns of the new kind and its objects by watching; until then it does not know what
	// would also be deleted.
	s.until("the definition is protected", func(context.Context) error {
		_, err := s.kubectl("delete", "crd", "teams.stories.weir.dev", "--dry-run=server")
		if err == nil {
			return errNotRefused
		}
		return nil
	})
	s.confirm([]string{"1 object would also be deleted", "1 teams.stories.weir.dev"}, "delete", "crd", "teams.stories.weir.dev", "--timeout=60s")
	// 1 Secret, and what is in every namespace does not count.
	s.confirm([]string{"1 object would also be deleted", "1 secrets (keys)"}, "delete", "namespace", s.namespace, "--timeout=90s")
}

// confirmation is the command in a refusal.
var confirmation = regexp.MustCompile(`kubectl (annotate .*weir\.dev/confirm-delete=[0-9a-f-]+)`)

// confirm runs a kubectl delete that is refused, then what the refusal says, and then the same
// again.
func (s *story) confirm(says []string, args ...string) {
	s.Helper()
	out := s.refused(says, args...)
	command := confirmation.FindStringSubmatch(out)
	if command == nil {
		s.Fatalf("kubectl %s says\n%s\nwhich has no command that confirms it", strings.Join(args, " "), out)
	}
	s.must(strings.Fields(command[1])...)
	s.must(args...)
}
