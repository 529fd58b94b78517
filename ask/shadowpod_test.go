package ask

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/weir-dev/weir/internal/tools/shadow/report"
)

// podServer is an API server with pods of Weir's controller, which forwards their ports by SPDY, as
// older ones do, and as one does behind a proxy that knows no WebSockets.
type podServer struct {
	*testing.T
	pods   []corev1.Pod
	denied string            // a path whose end is refused
	listen map[string]string // what pods answer, by name and port
	asked  []string          // pods that were
}

// ServeHTTP implements http.Handler.
func (s *podServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("Authorization"); got != "Bearer "+token {
		s.Errorf("%s is asked as %q", r.URL, got)
	}
	w.Header().Set("Content-Type", "application/json")
	const pods = "/api/v1/namespaces/weir-system/pods"
	name, sub, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, pods), "/"), "/")
	switch {
	case s.denied != "" && strings.HasSuffix(r.URL.Path, s.denied):
		s.status(w, http.StatusForbidden, metav1.StatusReasonForbidden, "User may not "+r.Method+" "+s.denied)
	case r.URL.Path == pods && r.URL.Query().Get("labelSelector") == controllerLabels:
		_ = json.NewEncoder(w).Encode(corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: s.pods})
	case sub == "" && len(s.pods) > 0 && s.pods[0].Name == name:
		p := s.pods[0]
		p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
		_ = json.NewEncoder(w).Encode(p)
	case sub == "portforward" && r.Method == http.MethodPost:
		s.forward(w, r, name)
	case sub == "portforward":
		s.status(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "no WebSockets")
	default:
		s.status(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no "+r.URL.Path)
	}
}

func (s *podServer) status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message})
}

// forward is what the kubelet does with one connection.
func (s *podServer) forward(w http.ResponseWriter, r *http.Request, pod string) {
	if _, err := httpstream.Handshake(r, w, []string{portforward.PortForwardProtocolV1Name}); err != nil {
		s.Error(err)
		return
	}
	streams := make(chan httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if conn == nil {
		s.Error("the connection was not upgraded")
		return
	}
	defer func() { _ = conn.Close() }() // the client has gone
	errs, data := <-streams, <-streams
	if errs.Headers().Get(corev1.StreamType) != corev1.StreamTypeError {
		errs, data = data, errs
	}
	s.asked = append(s.asked, pod)
	at := pod + ":" + data.Headers().Get(corev1.PortHeader)
	if body, found := s.listen[at]; found {
		s.answer(data, body)
	} else {
		fmt.Fprintf(errs, "failed to connect to %s: connection refused", at)
	}
	_ = errs.Close()
	_ = data.Close()
	<-conn.CloseChan()
}

// answer is what a pod does.
func (s *podServer) answer(data io.ReadWriter, body string) {
	req, err := http.ReadRequest(bufio.NewReader(data))
	if err != nil {
		s.Error(err)
		return
	}
	if req.URL.Path != report.Path || !strings.HasPrefix(req.Host, "127.0.0.1:") || req.Header.Get("Authorization") != "" {
		s.Errorf("a pod is asked for %s at %s with %v", req.URL, req.Host, req.Header)
	}
	resp := &http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
	if err := resp.Write(data); err != nil {
		s.Error(err)
	}
}

// controllerPod is a pod of Weir's controller that has run since a minute of a day.
func controllerPod(name string, minute int, args ...string) corev1.Pod {
	started := metav1.NewTime(time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC))
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: weirNamespace, Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "proxy", Args: []string{"--mode=loud"}}, {Name: "weir", Args: append([]string{"controller"}, args...)}}
	p.Status = corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &started, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	return p
}

func TestShadowAsksAPodWithoutCredentials(t *testing.T) {
	inShadow := controllerPod("one", 1, "--mode=shadow")
	late, unready, ends := controllerPod("late", 2, "--mode", "shadow"), controllerPod("unready", 0, "--mode=shadow"), controllerPod("ends", 0, "--mode=shadow")
	unready.Status.Conditions, ends.DeletionTimestamp = nil, &metav1.Time{Time: time.Now()}
	for name, c := range map[string]struct {
		pods  []corev1.Pod
		args  []string
		asked string
		says  string
	}{
		"the only one":        {[]corev1.Pod{inShadow}, nil, "one", ""},
		"the oldest":          {[]corev1.Pod{late, unready, ends, inShadow}, nil, "one", "Asked pod one, the first of 3"},
		"not ready yet":       {[]corev1.Pod{unready}, nil, "unready", ""},
		"after another mode":  {[]corev1.Pod{controllerPod("old", 0, "--mode=companion"), late}, nil, "late", "Asked pod late"},
		"the one that I name": {[]corev1.Pod{late, inShadow}, []string{"--pod", "late"}, "late", ""},
	} {
		t.Run(name, func(t *testing.T) {
			text := found(t)
			s := &podServer{T: t, pods: c.pods, listen: map[string]string{"one:8089": text, "late:8089": text, "unready:8089": text}}
			server := httptest.NewTLSServer(s)
			defer server.Close()
			got := weir(t, server.URL, append([]string{"shadow", "--gate", "24h"}, c.args...)...)
			if got.failed != nil || !strings.Contains(got.out, "No difference.") || strings.Join(s.asked, " ") != c.asked || !strings.Contains(got.err, c.says) || c.says == "" && got.err != "" {
				t.Errorf("asked %v: %+v", s.asked, got)
			}
		})
	}
}

func TestShadowSaysWhyItCannotAskAPod(t *testing.T) {
	pending := controllerPod("one", 1, "--mode=shadow")
	pending.Status.Phase = corev1.PodPending
	for name, c := range map[string]struct {
		pods   []corev1.Pod
		args   string
		denied string
		says   []string
	}{
		"no Weir":        {nil, "", "", []string{"there is no controller of Weir in namespace weir-system", "--namespace", "mode: shadow"}},
		"elsewhere":      {nil, "-n else", "", []string{"find Weir's controller", "there is no /api/v1/namespaces/else/pods"}},
		"it waits":       {[]corev1.Pod{pending}, "", "", []string{"does not run", "kubectl -n weir-system describe pod one"}},
		"companion mode": {[]corev1.Pod{controllerPod("one", 1, "--mode=companion")}, "", "", []string{"the weir of pod weir-system/one runs in companion mode and compares nothing: set mode: shadow"}},
		"by default":     {[]corev1.Pod{controllerPod("one", 1)}, "--pod one", "", []string{"runs in companion mode"}},
		"an older Weir":  {[]corev1.Pod{controllerPod("one", 1, "--mode=shadow")}, "", "", []string{"pod weir-system/one does not answer: ", "; its weir is older", "kubectl -n weir-system exec one --kubeconfig=/", "/kubeconfig -- /weir shadow"}},
		"no such pod":    {nil, "--pod two", "", []string{"read pod weir-system/two"}},
		"may not list":   {nil, "", "/pods", []string{"User may not GET /pods", "--pod names it"}},
		"may not ask":    {[]corev1.Pod{controllerPod("one", 1, "--mode=shadow")}, "", "/portforward", []string{"ask pod weir-system/one", "User may not POST /portforward", "the right to create pods/portforward in that namespace"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(&podServer{T: t, pods: c.pods, denied: c.denied})
			defer server.Close()
			weir(t, server.URL, append([]string{"shadow"}, strings.Fields(c.args)...)...).mustFail(t, c.says...)
		})
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	weir(t, gone.URL, "shadow").mustFail(t, "the API server does not answer")
}
