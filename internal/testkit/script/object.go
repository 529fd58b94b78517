package script

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/controller/graph"
)

// objectOf reads what follows "see".
func objectOf(words []string) (*graph.Object, error) {
	a, err := newArgs(words, "uid", "rv", "owners", "finalizers")
	if err != nil {
		return nil, err
	}
	o := &graph.Object{Deleting: a.take("deleting")}
	if len(a.words) != 2 {
		return nil, fmt.Errorf("a kind and a name wanted, got %q", a.words)
	}
	if o.Kind, err = kindOf(a.words[0]); err != nil {
		return nil, err
	}
	ns, name, namespaced := strings.Cut(a.words[1], "/")
	if !namespaced {
		ns, name = "", ns
	}
	var uid string
	for _, f := range []struct {
		to   *string
		from string
	}{{&o.Namespace, ns}, {&o.Name, name}, {&uid, a.named["uid"]}, {&o.ResourceVersion, a.named["rv"]}} {
		if *f.to, err = unescape(f.from); err != nil {
			return nil, err
		}
	}
	o.UID = types.UID(uid)
	for _, w := range list(a.named["finalizers"]) {
		f, err := unescape(w)
		if err != nil {
			return nil, err
		}
		o.Finalizers = append(o.Finalizers, f)
	}
	for _, w := range list(a.named["owners"]) {
		r, err := ownerOf(w)
		if err != nil {
			return nil, err
		}
		o.Owners = append(o.Owners, r)
	}
	return o, nil
}

func objectWords(o *graph.Object) string {
	var b strings.Builder
	if o.Namespace != "" {
		b.WriteString(escape(o.Namespace) + "/")
	}
	fmt.Fprintf(&b, "%s uid=%s rv=%s", escape(o.Name), escape(string(o.UID)), escape(o.ResourceVersion))
	if len(o.Owners) > 0 {
		b.WriteString(" owners=" + Owners(o.Owners))
	}
	if len(o.Finalizers) > 0 {
		b.WriteString(" finalizers=" + words(o.Finalizers))
	}
	if o.Deleting {
		b.WriteString(" deleting")
	}
	return b.String()
}

func words(list []string) string {
	var out []string
	for _, s := range list {
		out = append(out, escapePath(s))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// marks are the optional booleans of a reference: spelled out, because unset is not the same as
// false.
var marks = []struct {
	word    string
	set     func(*metav1.OwnerReference) **bool
	written bool
}{
	{"!block", blockOf, true}, {"!unblock", blockOf, false},
	{"*controller", controllerOf, true}, {"*uncontroller", controllerOf, false},
}

func blockOf(r *metav1.OwnerReference) **bool      { return &r.BlockOwnerDeletion }
func controllerOf(r *metav1.OwnerReference) **bool { return &r.Controller }

// ownerOf reads KIND/NAME/UID with its marks.
func ownerOf(word string) (r metav1.OwnerReference, err error) {
	for cut := true; cut; {
		cut = false
		for _, m := range marks {
			if rest, ok := strings.CutSuffix(word, m.word); ok {
				value := m.written
				word, *m.set(&r), cut = rest, &value, true
			}
		}
	}
	parts := strings.Split(word, "/")
	if len(parts) != 3 {
		return r, fmt.Errorf("owner %q is not KIND/NAME/UID", word)
	}
	kind := strings.SplitN(parts[0], ".", 3)
	for _, s := range []*string{&kind[0], &parts[1], &parts[2]} {
		if *s, err = unescape(*s); err != nil {
			return r, err
		}
	}
	r.Kind, r.Name, r.UID = kind[0], parts[1], types.UID(parts[2])
	if len(kind) == 1 {
		for _, u := range usual {
			if u.Kind == r.Kind {
				r.APIVersion = apiVersion(u.Group, u.Version)
				return r, nil
			}
		}
		return r, fmt.Errorf("owner %q needs a version: KIND.VERSION.GROUP", word)
	}
	for i := range kind[1:] {
		if kind[1+i], err = unescape(kind[1+i]); err != nil {
			return r, err
		}
	}
	r.APIVersion = kind[1]
	if len(kind) == 3 {
		r.APIVersion = apiVersion(kind[2], kind[1])
	}
	return r, nil
}

func apiVersion(group, version string) string {
	if group == "" {
		return version
	}
	return group + "/" + version
}

func ownerWord(r metav1.OwnerReference) string {
	kind := escapeDots(r.Kind)
	short := false
	for _, u := range usual {
		short = short || u.Kind == r.Kind && apiVersion(u.Group, u.Version) == r.APIVersion
	}
	if !short {
		group, version, grouped := strings.Cut(r.APIVersion, "/")
		if !grouped {
			group, version = "", r.APIVersion
		}
		kind += "." + escapeDots(version)
		if grouped {
			kind += "." + escape(group)
		}
	}
	w := kind + "/" + escape(r.Name) + "/" + escape(string(r.UID))
	for _, m := range marks {
		if p := *m.set(&r); p != nil && *p == m.written {
			w += m.word
		}
	}
	return w
}

// Owners writes references as "owners=" has them.
func Owners(refs []metav1.OwnerReference) string {
	var out []string
	for _, r := range refs {
		out = append(out, ownerWord(r))
	}
	return "(" + strings.Join(out, ", ") + ")"
}
