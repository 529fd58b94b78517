//go:build full

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mostMemory bounds what a process may take while a user writes all the references that fit.
const mostMemory = 300 << 10 // kB

// peak is the most memory that a process has had, in kB.
func peak(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestTwoMillionReferencesEndNoProcess: a tenant writes 70 objects with 28,000 owner references
// each, which is as much as one can hold.
func TestTwoMillionReferencesEndNoProcess(t *testing.T) {
	t.Parallel()
	w, p := newPaired(t, replace, planeOf(replace))
	w.protectSecrets()
	dead := make([]metav1.OwnerReference, 28000)
	for i := range dead {
		dead[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: types.UID(fmt.Sprint("never-", i))}
	}
	for _, name := range numbered("big", 70) {
		w.create("cm", name, dead)
	}
	w.awaitRefusal("delete", "secret", "guarded")
	t.Logf("webhook %d kB, controller %d kB", peak(t, p.hook.Pid()), peak(t, p.controller.Pid()))
	p.hook.Kill()
	p.controller.Kill()
	if err := p.hook.Restart(w.Context()); err != nil {
		t.Fatal(err)
	}
	if err := p.controller.Restart(w.Context()); err != nil {
		t.Fatal(err)
	}
	w.awaitRefusal("delete", "secret", "guarded")
	for name, pid := range map[string]int{"webhook": p.hook.Pid(), "controller": p.controller.Pid()} {
		kB := peak(t, pid)
		t.Logf("%s after a restart: %d kB", name, kB)
		if kB > mostMemory {
			t.Errorf("the %s took %d kB", name, kB)
		}
	}
}
