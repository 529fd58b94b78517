package e2e

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfigThrough is one by which weir reaches the API server through what wrap makes of a proxy
// that passes everything on. It is weir's user who asks.
func (w *fixture) kubeconfigThrough(name string, wrap func(api *httputil.ReverseProxy) http.Handler) (path string) {
	w.Helper()
	if _, err := identity(w.Context(), w.plane, weirUser); err != nil {
		w.Fatal(err)
	}
	config, _, err := w.plane.UserConfig(weirUser)
	if err != nil {
		w.Fatal(err)
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		w.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(wrap(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // who asks may go away
	}))
	w.Cleanup(server.CloseClientConnections)

	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name}
	k.CurrentContext = name
	path = filepath.Join(w.plane.Dir, name+".kubeconfig")
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		w.Fatal(err)
	}
	return path
}
