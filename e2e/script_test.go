package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-dev/weir/e2e/plane"
)

// TestCollectorScripts plays the scripts that need no policies.
func TestCollectorScripts(t *testing.T) { playScripts(t, false) }

// TestPolicyScripts plays those that say in which modes, where policies are enforced.
func TestPolicyScripts(t *testing.T) { playScripts(t, true) }

// playScripts plays each claim of testdata/*.txt by itself, all at the same time.
func playScripts(t *testing.T, policies bool) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("find scripts: %v, %v", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		where, claims := readScript(string(text))
		if policies != (where != "") {
			continue
		}
		for i, c := range claims {
			name := strings.TrimSuffix(filepath.Base(file), ".txt") + "/" + c.says
			if !policies {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					c.play(newFixture(t), file)
				})
			}
			for _, m := range modesOf(where, i) {
				t.Run(name+"/"+string(m), func(t *testing.T) {
					t.Parallel()
					c.play(newEnforced(t, m), file)
				})
			}
		}
	}
}

// claim is a part of a script: what it says, and the commands that show it.
type claim struct {
	says  string
	steps []step
}

// step is a command, and the lines below it.
type step struct {
	line int
	text string
	more []string
}

// modesOf returns the modes in which the n-th claim of a script is played; none without policies.
func modesOf(where string, n int) []mode {
	switch where {
	case "":
		return nil
	case "in each mode":
		return []mode{replace, companion}
	case "in either mode":
		return either(n)
	}
	return []mode{mode(strings.TrimSuffix(strings.TrimPrefix(where, "in "), " mode"))}
}

// readScript takes a script apart, and returns where it is played; empty if policies have no part.
func readScript(text string) (where string, claims []claim) {
	for i, line := range strings.Split(text, "\n") {
		says, isClaim := strings.CutPrefix(line, "## ")
		switch {
		case strings.TrimSpace(line) == "":
		case isClaim:
			claims = append(claims, claim{says: says})
		case strings.HasPrefix(line, "#"):
		case len(claims) == 0:
			where = line
		case strings.HasPrefix(line, " "):
			steps := claims[len(claims)-1].steps
			steps[len(steps)-1].more = append(steps[len(steps)-1].more, line)
		default:
			last := &claims[len(claims)-1]
			last.steps = append(last.steps, step{line: i + 1, text: line})
		}
	}
	return where, claims
}

// player is a fixture in which a claim is played.
type player struct {
	*fixture
	forged    map[string]metav1.OwnerReference // references that are not those of an object
	elsewhere *fixture
	dropped   types.UID // of the namespace
	file      string    // the last manifest, or file
	policies  int       // that were made
}

func (c *claim) play(w *fixture, file string) {
	p := &player{fixture: w, forged: map[string]metav1.OwnerReference{"never": ownerThatNeverWas()}}
	var now step
	defer func() {
		if w.Failed() {
			w.Errorf("%s:%d: %s", file, now.line, now.text)
		}
	}()
	for _, now = range c.steps {
		verb, rest, _ := strings.Cut(p.filledIn(now.text), " ")
		p.do(verb, rest, strings.Split(p.filledIn(strings.Join(now.more, "\n")), "\n"))
		if w.Failed() {
			return
		}
	}
}

// filledIn has the fixture's namespace for NAMESPACE, that of elsewhere for ELSEWHERE, an object's
// uid for UID(NAME), the archived tree of what is deleted for TREE(KIND NAME), n letters for X(n),
// and all objects that a test made whose names begin so for NAME-*.
func (p *player) filledIn(text string) string {
	text = strings.NewReplacer("NAMESPACE", p.namespace, "FILE", p.file).Replace(text)
	if p.elsewhere != nil {
		text = strings.ReplaceAll(text, "ELSEWHERE", p.elsewhere.namespace)
	}
	text = regexp.MustCompile(`X\(\d+\)`).ReplaceAllStringFunc(text, func(x string) string {
		n, err := strconv.Atoi(x[len("X(") : len(x)-1])
		if err != nil {
			p.Fatal(err)
		}
		return strings.Repeat("x", n)
	})
	text = regexp.MustCompile(`\S+-\*`).ReplaceAllStringFunc(text, func(all string) string {
		return strings.Join(slices.DeleteFunc(slices.Sorted(maps.Keys(p.made)), func(name string) bool {
			return !strings.HasPrefix(name, strings.TrimSuffix(all, "*"))
		}), " ")
	})
	text = regexp.MustCompile(`TREE\([^)]+\)`).ReplaceAllStringFunc(text, func(tree string) string {
		root := tree[len("TREE(") : len(tree)-1]
		p.until("there is one tree of "+root, func(context.Context) (bool, error) { return len(p.trees()[root]) == 1, nil })
		return p.trees()[root][0]
	})
	return regexp.MustCompile(`UID\((\S+?)\)`).ReplaceAllStringFunc(text, func(uid string) string {
		return string(p.of(uid[len("UID(") : len(uid)-1]).uid)
	})
}

// do carries out a command; doc_test.go says what each does.
func (p *player) do(verb, rest string, more []string) {
	p.Helper()
	args := strings.Fields(rest)
	var says []string
	for _, line := range more {
		if says = append(says, strings.TrimSpace(line)); says[0] == "" {
			says = nil
		}
	}
	switch verb {
	case "make":
		p.makeLines(more)
	case "many":
		n, err := strconv.Atoi(args[2])
		if err != nil {
			p.Fatal(err)
		}
		p.make(dependents(args[0], numbered(args[1], n), args[3]))
	case "manifest":
		p.writeManifest(rest)
	case "file":
		p.writeFile([]byte(strings.ReplaceAll(strings.Join(more, "\n"), "\n  ", "\n")[len("  "):]))
	case "unarmed":
		p.removeFinalizer(args...)
	case "elsewhere":
		if p.elsewhere == nil {
			p.elsewhere = p.beside()
		}
		p.in(p.elsewhere, rest, more)
	case "in":
		other := *p.fixture
		other.namespace = args[0]
		p.in(&other, strings.TrimPrefix(rest, args[0]+" "), more)
	case "define":
		scope := apiextensionsv1.NamespaceScoped
		if args[1] == "cluster" {
			scope, args = apiextensionsv1.ClusterScoped, args[1:]
		}
		p.define(p.definition(strings.Fields(rest)[0], scope, args[1:]...))
	case "forge":
		p.forge(args[0], args[1], args[2:])
	case "deployed":
		sets, pods := p.deployed(args[0])
		for name, is := range map[string]string{"set": sets[0], "pod-1": pods[0], "pod-2": pods[1]} {
			p.made[name] = p.of(is)
		}
	case "delete":
		p.deleteWith(args[0], deleteOptions(args[1]))
	case "own":
		for name, r := range p.forged {
			if len(args) == 2 && args[1] == name {
				p.patch(args[0], owned(r))
				return
			}
		}
		p.own(args[0], args[1:]...)
	case "patch":
		p.patch(args[0], strings.Join(args[1:], " "))
	case "unfinalize":
		p.unfinalize(args...)
	case "drop":
		p.dropped = p.drop()
	case "namespace":
		p.annotate(rest)
	case "finalize":
		p.finalize(finalizerNames(args)...)
	case "policy":
		p.anotherPolicy(args[0], "\n"+strings.Join(more, "\n"))
	case "compiled":
		p.compiled(rest, strings.Join(more, "\n"))
	case "kubectl":
		p.mustSay(p.mustKubectl(args...), says...)
	case "ask":
		p.mustSay(p.mustAsk(args...), says...)
	case "!":
		p.mustFail(args, says)
	case "until":
		p.untilSaid(args, says)
	default:
		p.see(verb, args, says)
	}
}

// in carries out a command in another namespace.
func (p *player) in(w *fixture, command string, more []string) {
	p.Helper()
	other := *p
	other.fixture = w
	verb, rest, _ := strings.Cut(command, " ")
	other.do(verb, rest, more)
}

// see waits for what is to be there.
func (p *player) see(verb string, args, says []string) {
	p.Helper()
	switch verb {
	case "gone":
		p.awaitGone(args...)
	case "stay":
		p.mustStay(args...)
	case "there":
		p.mustBeThere(args...)
	case "alive":
		p.alive(args...)
	case "terminating":
		for _, name := range args {
			p.awaitTerminating(name)
		}
	case "owners":
		p.awaitOwners(args[0], strings.Join(args[1:], " "))
	case "ownerless":
		for _, name := range args {
			p.awaitOwners(name, "")
		}
	case "finalizers":
		p.awaitFinalizers(args[0], args[1:]...)
	case "foreground":
		p.awaitForeground(args[0])
	case "added":
		p.awaitFinalizerAdded(args[0])
	case "refused":
		p.awaitRefusal(args...)
	case "event":
		p.mustSay(p.awaitEvent(args[0], args[1]).Message, says...)
	case "conditions":
		p.awaitConditions(says...)
	case "wave":
		p.awaitWave(args[0])
	case "told":
		p.until("an Event says so", func(context.Context) (bool, error) {
			return slices.Contains(p.namespaceEvents(p.dropped, args[0]), says[0]), nil
		})
	case "idle":
		if err := p.weir.AwaitIdle(p.Context()); err != nil {
			p.Fatal(err)
		}
	case "dropped":
		p.awaitDropped(p.dropped)
	default:
		p.Fatalf("no command %q", verb)
	}
}

// mustFail runs a command that is refused, and says so on a line of its own.
func (p *player) mustFail(args, says []string) {
	p.Helper()
	if args[0] == "kubectl" {
		p.mustRefuse(says, args[1:]...)
		return
	}
	out, said, code := p.ask(p.plane.Kubeconfig, append(args[1:], "-n", p.namespace)...)
	if code != 1 || out != "" || strings.Count(strings.TrimSpace(said), "\n") > 0 {
		p.Errorf("exit code %d\n%s%s", code, out, said)
	}
	p.mustSay(said, says...)
}

// untilSaid asks kubectl, or kubectl weir, again and again, until it says what it is to say, and with
// ! is refused.
func (p *player) untilSaid(args, says []string) {
	p.Helper()
	refused := args[0] == "!"
	args = strings.Fields(strings.TrimPrefix(strings.Join(args, " "), "! "))
	p.until(fmt.Sprintf("%s says %q", strings.Join(args, " "), says), func(context.Context) (bool, error) {
		var failed bool
		var out string
		if args[0] == "ask" {
			said, more, code := p.ask(p.plane.Kubeconfig, append(args[1:], "-n", p.namespace)...)
			failed, out = code != 0, said+more
		} else {
			said, err := p.kubectl(args[1:]...)
			failed, out = err != nil, said
		}
		return failed == refused && !slices.ContainsFunc(says, func(line string) bool { return !strings.Contains(out, line) }), nil
	})
}

// anotherPolicy makes a policy, and waits until it is valid; the second of a kind has a name of its own.
func (p *player) anotherPolicy(kind, spec string) {
	p.Helper()
	name := fmt.Sprintf("%s-%s", strings.ToLower(kind), p.namespace)
	if p.policies++; p.policies > 1 {
		name = fmt.Sprintf("%s-%d", name, p.policies)
	}
	p.policyNamed(kind, name, spec)
	p.awaitCondition(kind, name, "Valid", metav1.ConditionTrue)
}

// compiled applies what weir policy compile makes of a policy.
func (p *player) compiled(kind, spec string) {
	p.Helper()
	name := "compiled-" + p.namespace
	p.writeFile(fmt.Appendf(nil, "apiVersion: weir.dev/v1beta1\nkind: %s\nmetadata: {name: %s}\nspec:\n%s", kind, name, strings.ReplaceAll(spec, "HERE", p.here())))
	var said strings.Builder
	args := []string{"policy", "compile", p.file}
	if v := os.Getenv(plane.KubernetesVariable); v != "" {
		args = append(args, "--kubernetes", strings.TrimPrefix(v, "v"))
	}
	cmd := exec.CommandContext(p.Context(), shared.binary, args...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); len(out) == 0 || err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 3) {
		p.Fatalf("weir policy compile: %v: %s", err, said.String())
	}
	p.writeFile(out)
	p.Cleanup(func() {
		ctx, admission := context.WithoutCancel(p.Context()), p.typed.AdmissionregistrationV1()
		for _, name := range []string{name, name + "-owner-references"} {
			for _, err := range []error{admission.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}),
				admission.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{})} {
				if err != nil && !apierrors.IsNotFound(err) {
					p.Error(err)
				}
			}
		}
	})
	p.mustKubectl("apply", "-f", p.file)
}

// owned is a patch to this reference.
func owned(r metav1.OwnerReference) string {
	return fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`, r.APIVersion, r.Kind, r.Name, r.UID)
}

// makeLines is make with owners that may be forged.
func (p *player) makeLines(lines []string) {
	p.Helper()
	for _, text := range lines {
		l, owners := p.line(text)
		p.create(l.kind, l.name, owners, l.finalizers...)
	}
}

// writeManifest writes an object to a file.
func (p *player) writeManifest(text string) {
	p.Helper()
	l, owners := p.line(text)
	manifest, err := p.kinds[l.kind].manifest(l.name, owners, l.finalizers)
	if err != nil {
		p.Fatal(err)
	}
	data, err := json.Marshal(manifest)
	if err != nil {
		p.Fatal(err)
	}
	p.writeFile(data)
}

// writeFile writes what FILE names from now on.
func (p *player) writeFile(data []byte) {
	p.Helper()
	p.file = filepath.Join(p.TempDir(), "file")
	if err := os.WriteFile(p.file, data, 0o600); err != nil {
		p.Fatal(err)
	}
}

// line reads a line, and the references that it has.
func (p *player) line(text string) (line, []metav1.OwnerReference) {
	p.Helper()
	l, err := readLine(text)
	if err != nil {
		p.Fatal(err)
	}
	var owners []metav1.OwnerReference
	for _, word := range l.owners {
		name, set := cutMarks(word)
		r, forged := p.forged[name]
		if set(&r); !forged {
			r = p.reference(word)
		}
		owners = append(owners, r)
	}
	return l, owners
}

// forge names a reference that is that of an object, but for what is said.
func (p *player) forge(name, of string, but []string) {
	p.Helper()
	r := p.of(of).reference()
	for _, change := range but {
		switch key, value, _ := strings.Cut(change, "="); key {
		case "kind":
			r.Kind = value
		case "name":
			r.Name = value
		case "uid":
			r.UID = types.UID(value)
			if value == "new" {
				r.UID = uuid.NewUUID()
			}
		case "version":
			gv := strings.Split(r.APIVersion, "/")
			gv[len(gv)-1] = value
			r.APIVersion = strings.Join(gv, "/")
		case "group":
			r.APIVersion = value
		default:
			p.Fatalf("no %q to forge", change)
		}
	}
	p.forged[name] = r
}

func finalizerNames(words []string) (names []corev1.FinalizerName) {
	for _, word := range words {
		names = append(names, corev1.FinalizerName(word))
	}
	return names
}

// deleteOptions are those of a propagation as it is written.
func deleteOptions(word string) metav1.DeleteOptions {
	policy, ok := map[string]metav1.DeletionPropagation{"background": background, "foreground": foreground, "orphan": orphan}[word]
	switch {
	case ok:
		return metav1.DeleteOptions{PropagationPolicy: &policy}
	case word == "orphanDependents":
		return metav1.DeleteOptions{OrphanDependents: new(true)}
	case word == "none":
		return metav1.DeleteOptions{}
	}
	panic(fmt.Sprintf("no propagation %q", word))
}
