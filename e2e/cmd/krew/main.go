// Command krew builds the archives of the kubectl plugin for each platform, and the manifest by
// which krew installs them.
//
// The same sources and version come to the same archives, byte by byte: who builds them can
// compare.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// options say what is built.
type options struct {
	source, out, version, url string
	platforms                 []string
}

func main() {
	var o options
	flag.StringVar(&o.source, "source", "..", "the sources")
	flag.StringVar(&o.out, "out", "../bin/krew", "the folder that archives and manifest are written to")
	flag.StringVar(&o.version, "version", "", "the version, as in v1.2.3")
	flag.StringVar(&o.url, "url", "", "where the archives will be: https://…/, without their names")
	platforms := flag.String("platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64", "what to build for")
	flag.Parse()
	o.platforms = strings.Split(*platforms, ",")
	if err := o.run(); err != nil {
		fmt.Fprintln(os.Stderr, "krew:", err)
		os.Exit(1)
	}
}

// manifest is what krew reads (krew.googlecontainertools.github.com/v1alpha2).
type manifest struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       spec              `json:"spec"`
}

type spec struct {
	Version          string     `json:"version"`
	Homepage         string     `json:"homepage"`
	ShortDescription string     `json:"shortDescription"`
	Description      string     `json:"description"`
	Platforms        []platform `json:"platforms"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Files  []file `json:"files"`
	Bin    string `json:"bin"`
}

type file struct {
	From string `json:"from"`
	To   string `json:"to"`
}

func (o options) run() error {
	if !strings.HasPrefix(o.version, "v") {
		return fmt.Errorf("--version %q: must be one as in v1.2.3", o.version)
	}
	if !strings.HasPrefix(o.url, "https://") || !strings.HasSuffix(o.url, "/") {
		return fmt.Errorf("--url %q: must be the folder of the archives, as in https://example.com/weir/v1.2.3/", o.url)
	}
	if err := os.MkdirAll(o.out, 0o755); err != nil {
		return err
	}
	m := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin", Metadata: map[string]string{"name": "weir"},
		Spec: spec{
			Version: o.version, Homepage: "https://github.com/weir-dev/weir",
			ShortDescription: "Show what a delete takes along, and why objects stay",
			Description: `Shows what a delete would do before it is done, in what order and who decides; why an object is not going, and who has
to act; who owns an object and what it owns; all that is being deleted; and objects whose owners are gone. It lists with your
own rights, needs nothing in the cluster, and changes nothing. "kubectl weir ui" serves all of it as a page on your machine.
`,
		},
	}
	for _, name := range o.platforms {
		p, err := o.build(name)
		if err != nil {
			return fmt.Errorf("build for %s: %w", name, err)
		}
		m.Spec.Platforms = append(m.Spec.Platforms, p)
	}
	data, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.out, "weir.yaml"), data, 0o644)
}

// build builds the plugin for a platform, and packs it.
func (o options) build(name string) (p platform, err error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok {
		return p, errors.New("must be OS/ARCH")
	}
	p.Bin = "kubectl-weir"
	if system == "windows" {
		p.Bin += ".exe"
	}
	binary := filepath.Join(o.out, system+"-"+arch, p.Bin)
	target, err := filepath.Abs(binary)
	if err != nil {
		return p, err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid= -X github.com/weir-dev/weir/internal/version.release="+o.version, "-o", target, "./cmd/kubectl-weir")
	cmd.Dir = o.source
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w\n%s", err, out)
	}
	archive := fmt.Sprintf("kubectl-weir-%s-%s-%s.tar.gz", o.version, system, arch)
	data, err := pack(map[string]string{p.Bin: binary, "LICENSE": filepath.Join(o.source, "LICENSE")}, p.Bin, "LICENSE")
	if err != nil {
		return p, err
	}
	if err := os.WriteFile(filepath.Join(o.out, archive), data, 0o644); err != nil {
		return p, err
	}
	p.Selector.MatchLabels = map[string]string{"os": system, "arch": arch}
	p.URI, p.SHA256 = o.url+archive, fmt.Sprintf("%x", sha256.Sum256(data))
	p.Files = []file{{From: p.Bin, To: "."}, {From: "LICENSE", To: "."}}
	return p, nil
}

// pack makes an archive of files, in the order of their names in it, and of no time.
func pack(files map[string]string, names ...string) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	t := tar.NewWriter(z)
	for _, name := range names {
		data, err := os.ReadFile(files[name])
		if err != nil {
			return nil, err
		}
		mode := int64(0o644)
		if name != "LICENSE" {
			mode = 0o755
		}
		if err := t.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(data)), ModTime: time.Unix(0, 0), Format: tar.FormatPAX}); err != nil {
			return nil, err
		}
		if _, err := t.Write(data); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(t.Close(), z.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
