package e2e

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// webhookToken is what the webhook's paths begin with.
func (w *fixture) webhookToken() string {
	w.Helper()
	secret, err := w.typed.CoreV1().Secrets(metav1.NamespaceSystem).Get(w.Context(), "weir-webhook-token", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return string(secret.Data["token"])
}

// webhookURL is what the API server calls.
func (w *fixture) webhookURL() *url.URL {
	w.Helper()
	configuration, err := w.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(w.Context(), "weir", metav1.GetOptions{})
	if err != nil {
		w.Fatal(err)
	}
	u, err := url.Parse(*configuration.Webhooks[0].ClientConfig.URL)
	if err != nil {
		w.Fatal(err)
	}
	return u
}

// stranger sends the webhook what it likes, at the address that the API server calls.
func (w *fixture) stranger(path, body string) (int, string) {
	w.Helper()
	u := w.webhookURL()
	u.Path = path
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(w.Context(), http.MethodPost, u.String(), strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// Whoever reaches the webhook's port has nothing written to objects of their choice, with the token
// or without.
func TestForgedReviewsChangeNothing(t *testing.T) {
	eachMode(t, func(t *testing.T, w *fixture) {
		w.policy("DeletionPolicy", strings.ReplaceAll(configMaps, "%s", "Orphan"))
		w.awaitFinalizerAdded("cm")
		w.make(`
			cm  one
			sec precious
		`)
		w.removeFinalizer("one")
		before := w.get("precious")
		forged := func(name, uid string) string {
			return fmt.Sprintf(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"DELETE",
				"kind":{"version":"v1","kind":"ConfigMap"},"resource":{"version":"v1","resource":"configmaps"},"namespace":%[1]q,"userInfo":{"username":"mallory"},
				"oldObject":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%[2]q,"namespace":%[1]q,"uid":%[3]q,"finalizers":["evil.example/never"]}}}}`,
				w.namespace, name, uid)
		}
		delete := "/" + w.webhookToken() + "/delete"
		up := "../../../../../api/v1/namespaces/" + w.namespace + "/secrets/" + w.of("precious").name
		for _, review := range []string{forged(up, ""), forged(up, string(before.GetUID())), forged(w.of("one").name, ""), forged(w.of("one").name, "guessed")} {
			for _, path := range []string{"/delete", "/guessed/delete", "/stamp", "/"} {
				if code, text := w.stranger(path, review); code != http.StatusNotFound {
					t.Errorf("%s: %d %s", path, code, text)
				}
			}
			if code, text := w.stranger(delete, review); code == http.StatusOK && !strings.Contains(text, `"code":429`) {
				t.Errorf("%d %s", code, text)
			}
		}
		if after := w.get("precious"); after.GetResourceVersion() != before.GetResourceVersion() {
			t.Errorf("it was written to: finalizers %v, annotations %v", after.GetFinalizers(), after.GetAnnotations())
		}
		if after := w.get("one"); slices.Contains(after.GetFinalizers(), "evil.example/never") {
			t.Errorf("it has finalizers %v", after.GetFinalizers())
		}
		if n := w.requests(hookUser, "one")["patch"] + w.requests(hookUser, "precious")["patch"]; n != 0 {
			t.Errorf("the webhook wrote %d times", n)
		}
		// An honest review is one that is about the object, whoever sends it.
		if code, text := w.stranger(delete, forged(w.of("one").name, string(w.get("one").GetUID()))); code != http.StatusOK || !strings.Contains(text, `"code":429`) {
			t.Errorf("%d %s", code, text)
		}
		if after := w.get("one"); fmt.Sprint(after.GetFinalizers()) != "[weir.dev/propagation]" {
			t.Errorf("it has finalizers %v", after.GetFinalizers())
		}
	})
}
