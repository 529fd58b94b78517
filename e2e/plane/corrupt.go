package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Corrupt writes what no API server can decode under a key of etcd, and returns what takes it away
// again. An API server goes on answering about the kind, and its watches go on, and show nothing.
func (p *Plane) Corrupt(ctx context.Context, key string) (repair func(context.Context) error, err error) {
	if err := p.askEtcd(ctx, "/v3/kv/put", map[string][]byte{"key": []byte(key), "value": []byte("k8s:enc:unknown")}); err != nil {
		return nil, err
	}
	return func(ctx context.Context) error { return p.Erase(ctx, key) }, nil
}

// Erase takes a key out of etcd, whatever an API server would say.
func (p *Plane) Erase(ctx context.Context, key string) error {
	return p.askEtcd(ctx, "/v3/kv/deleterange", map[string][]byte{"key": []byte(key)})
}

func (p *Plane) askEtcd(ctx context.Context, path string, body map[string][]byte) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.etcdURL()+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	resp, err := localClient().Do(req)
	if err != nil {
		return fmt.Errorf("ask etcd for %s: %w", path, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask etcd for %s: %s", path, resp.Status)
	}
	return nil
}
