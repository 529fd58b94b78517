package main

import (
	"bytes"
	"fmt"
	"io"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is no known one, and a number, so that Kubernetes can see that it is not root.
const user = "65532:65532"

// platformImage is the program for one platform.
type platformImage struct {
	os, arch string
	binary   []byte
}

// about is what the image says of itself.
type about struct {
	// program is a file in the root directory. There is nothing else: no shell, no user database,
	// no CA certificates (Weir speaks with the API server alone, whose CA comes with the
	// ServiceAccount).
	program                 string
	name, version, revision string
	created                 time.Time
}

func (a about) labels() map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":    a.program,
		"org.opencontainers.image.source":   "https://github.com/weir-dev/weir",
		"org.opencontainers.image.licenses": "Apache-2.0",
		"org.opencontainers.image.version":  a.version,
	}
	if a.program == "weir" {
		l["org.opencontainers.image.description"] = "Decides by policy what else is deleted when an object in a cluster is, and deletes it"
	}
	if a.revision != "" {
		l["org.opencontainers.image.revision"] = a.revision
	}
	return l
}

// assemble makes one index of an image for each platform.
func assemble(images []platformImage, a about) (archive, error) {
	out := archive{name: a.name, created: a.created, index: mutate.IndexMediaType(empty.Index, types.OCIImageIndex)}
	for _, p := range images {
		img, err := one(p, a)
		if err != nil {
			return archive{}, fmt.Errorf("make the image for %s/%s: %w", p.os, p.arch, err)
		}
		out.index = mutate.AppendManifests(out.index, mutate.IndexAddendum{
			Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		if out.first == nil {
			out.first = img
		}
	}
	return out, nil
}

func one(p platformImage, a about) (v1.Image, error) {
	files, err := tarred([]entry{{a.program, 0o755, p.binary}}, a.created)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil }
	l, err := tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: l, History: v1.History{Created: v1.Time{Time: a.created}, CreatedBy: "make image"}})
	if err != nil {
		return nil, err
	}
	cfg, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	cfg = cfg.DeepCopy()
	cfg.OS, cfg.Architecture, cfg.Created = p.os, p.arch, v1.Time{Time: a.created}
	cfg.Config = v1.Config{User: user, Entrypoint: []string{"/" + a.program}, WorkingDir: "/", Labels: a.labels()}
	return mutate.ConfigFile(img, cfg)
}
