package plane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// startEtcd runs etcd without fsync: its data lives as long as the plane, and
// a power cut ends both.
func (p *Plane) startEtcd(ctx context.Context, path string) error {
	client, err := FreePort()
	if err != nil {
		return err
	}
	peer, err := FreePort()
	if err != nil {
		return err
	}
	p.etcd, p.peer = client, peer
	clientURL, peerURL := p.etcdURL(), p.peerURL()
	c := Command(string(Etcd), path, p.log(Etcd),
		"--name=plane",
		"--data-dir="+filepath.Join(p.Dir, "etcd"),
		"--listen-client-urls="+clientURL,
		"--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=plane="+peerURL,
		"--unsafe-no-fsync",
		// A hundred thousand objects and their history fit.
		"--quota-backend-bytes=8589934592",
	)
	return p.run(ctx, c)
}

func (p *Plane) etcdURL() string { return "http://" + loopback(p.etcd) }
func (p *Plane) peerURL() string { return "http://" + loopback(p.peer) }

// run starts etcd or the API server, for the first time or again, and returns when it answers.
func (p *Plane) run(ctx context.Context, c *Child) error {
	if err := p.start(ctx, c); err != nil {
		return err
	}
	if c.Name == string(Etcd) {
		return p.await(ctx, c, answers(localClient(), p.etcdURL()+"/health"))
	}
	return p.awaitServer(ctx, c, p.Config)
}

// Crash kills etcd or the API server, without a warning, and starts it again on the same data and
// port. It returns when both answer. What a killed etcd wrote is with the kernel, and is there when
// it is back: only a machine that dies could lose what was not synced.
func (p *Plane) Crash(ctx context.Context, part Part) error {
	c := p.Child(part)
	c.Kill()
	if err := p.run(ctx, c); err != nil {
		return err
	}
	return p.awaitServer(ctx, p.Child(APIServer), p.Config)
}

// Corrupt writes what no API server can decode under a key of etcd, and returns what takes it away
// again. An API server goes on answering about the kind, and its watches go on, and show nothing.
func (p *Plane) Corrupt(ctx context.Context, key string) (repair func(context.Context) error, err error) {
	body := map[string][]byte{"key": []byte(key), "value": []byte("k8s:enc:unknown")}
	return func(ctx context.Context) error { return p.Erase(ctx, key) }, p.askEtcd(ctx, "kv/put", body, io.Discard)
}

// Erase takes a key out of etcd, whatever an API server would say.
func (p *Plane) Erase(ctx context.Context, key string) error {
	return p.askEtcd(ctx, "kv/deleterange", map[string][]byte{"key": []byte(key)}, io.Discard)
}

// Snapshot writes a backup of etcd to a file, as an operator takes it while the cluster works.
func (p *Plane) Snapshot(ctx context.Context, path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return p.askEtcd(ctx, "maintenance/snapshot", map[string][]byte{}, file)
}

// askEtcd asks for a call of etcd's, and writes the blobs that it answers. What gRPC streams in
// pieces comes as one JSON object after the other.
func (p *Plane) askEtcd(ctx context.Context, call string, body map[string][]byte, blobs io.Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("ask etcd for %s: %w", call, err)
		}
	}()
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.etcdURL()+"/v3/"+call, bytes.NewReader(text))
	if err != nil {
		return err
	}
	resp, err := localClient().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	for pieces := json.NewDecoder(resp.Body); ; {
		var piece struct {
			Result struct {
				Blob []byte `json:"blob"`
			} `json:"result"`
		}
		if err := pieces.Decode(&piece); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if _, err := blobs.Write(piece.Result.Blob); err != nil {
			return err
		}
	}
}

// RestoreOptions say how a backup is restored.
type RestoreOptions struct {
	// Bump makes revisions go on so much further, and marks all before as compacted; 0: they go
	// back.
	Bump uint64
}

// Restore puts etcd back to a snapshot: the API server is ended and started again around it.
func (p *Plane) Restore(ctx context.Context, snapshot string, o RestoreOptions) error {
	restorer, err := p.binary(ctx, Restorer)
	if err != nil {
		return err
	}
	server, etcd := p.Child(APIServer), p.Child(Etcd)
	_ = server.Stop(2 * time.Second) // as in RestartAPIServer
	_ = etcd.Stop(DefaultGrace)      // what it stored goes away, so it may be killed as well
	dir := filepath.Join(p.Dir, "etcd")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	args := []string{"snapshot", "restore", snapshot, "--data-dir=" + dir, "--name=plane",
		"--initial-cluster=plane=" + p.peerURL(), "--initial-advertise-peer-urls=" + p.peerURL()}
	if o.Bump > 0 {
		args = append(args, fmt.Sprintf("--bump-revision=%d", o.Bump), "--mark-compacted")
	}
	if out, err := exec.CommandContext(ctx, restorer, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("restore etcd: %w\n%s", err, out)
	}
	if err := p.run(ctx, etcd); err != nil {
		return err
	}
	return p.run(ctx, server)
}
