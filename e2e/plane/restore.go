package plane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Snapshot writes a backup of etcd to a file, as an operator takes it while the cluster works.
func (p *Plane) Snapshot(ctx context.Context, path string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("take a snapshot of etcd: %w", err)
		}
	}()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.etcdURL()+"/v3/maintenance/snapshot", strings.NewReader("{}"))
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
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// What gRPC streams in pieces comes as one JSON object after the other.
	for pieces := json.NewDecoder(resp.Body); ; {
		var piece struct {
			Result struct {
				Blob []byte `json:"blob"`
			} `json:"result"`
		}
		switch err := pieces.Decode(&piece); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if _, err := file.Write(piece.Result.Blob); err != nil {
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
		return fmt.Errorf("remove what etcd stored: %w", err)
	}
	args := []string{"snapshot", "restore", snapshot, "--data-dir=" + dir, "--name=plane",
		"--initial-cluster=plane=" + p.peerURL(), "--initial-advertise-peer-urls=" + p.peerURL()}
	if o.Bump > 0 {
		args = append(args, fmt.Sprintf("--bump-revision=%d", o.Bump), "--mark-compacted")
	}
	if out, err := exec.CommandContext(ctx, restorer, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("restore etcd: %w\n%s", err, out)
	}
	if err := p.start(ctx, etcd); err != nil {
		return err
	}
	if err := p.await(ctx, etcd, answers(localClient(), p.etcdURL()+"/health")); err != nil {
		return err
	}
	if err := p.start(ctx, server); err != nil {
		return err
	}
	return p.awaitAPIServer(ctx, server)
}

func (p *Plane) etcdURL() string { return "http://" + loopback(p.etcd) }
func (p *Plane) peerURL() string { return "http://" + loopback(p.peer) }
