package main

import (
	"bytes"
	"encoding/json"
	"io"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Types of what refers to an image.
const (
	sbomType       = "application/vnd.cyclonedx+json"
	provenanceType = "application/vnd.in-toto+json"
	signatureType  = "application/vnd.dsse.envelope.v1+json"
)

// referrer is a file that says something of an image. A registry lists it by the image's digest
// (OCI distribution 1.1), so nothing changes the image.
type referrer struct {
	subject    v1.Descriptor
	mediaType  string
	name       string
	data       []byte
	predicates string // of a statement: what it states
}

// append writes the file, the manifest of it, and both into the index of a layout.
func (r referrer) append(p layout.Path) error {
	config := []byte("{}")
	put := func(mediaType string, data []byte) (v1.Descriptor, error) {
		hash, size, err := v1.SHA256(bytes.NewReader(data))
		if err != nil {
			return v1.Descriptor{}, err
		}
		d := v1.Descriptor{MediaType: types.MediaType(mediaType), Size: size, Digest: hash}
		return d, p.WriteBlob(hash, io.NopCloser(bytes.NewReader(data)))
	}
	// Registries of before OCI 1.1 take this for the type of the whole.
	of, err := put(r.mediaType, config)
	if err != nil {
		return err
	}
	file, err := put(r.mediaType, r.data)
	if err != nil {
		return err
	}
	file.Annotations = map[string]string{"org.opencontainers.image.title": r.name}
	m := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1, ArtifactType: r.mediaType,
		Config: of, Layers: []v1.Descriptor{file}, Subject: &r.subject}
	if r.predicates != "" {
		m.Annotations = map[string]string{"in-toto.io/predicate-type": r.predicates}
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	d, err := put(string(m.MediaType), raw)
	if err != nil {
		return err
	}
	d.ArtifactType, d.Annotations = m.ArtifactType, m.Annotations
	return p.AppendDescriptor(d)
}

// bare is a descriptor without what only an index says of it.
func bare(d v1.Descriptor) v1.Descriptor {
	return v1.Descriptor{MediaType: d.MediaType, Size: d.Size, Digest: d.Digest}
}
