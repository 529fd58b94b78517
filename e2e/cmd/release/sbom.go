package main

import (
	"bytes"
	"os"
	"path/filepath"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/CycloneDX/cyclonedx-gomod/pkg/generate/bin"
	"github.com/rs/zerolog"
)

// sbom lists the modules that a binary says it is made of, as CycloneDX. It has no serial number
// and is of a given time, so it is the same each time; package URLs are short, or they would name
// the platform of this machine.
func sbom(binary []byte, name, version string, created time.Time) ([]byte, error) {
	dir, err := os.MkdirTemp("", "weir-sbom-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a temporary directory that stays is no failure
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, binary, 0o755); err != nil {
		return nil, err
	}
	g, err := bin.NewGenerator(path, bin.WithLogger(zerolog.Nop()), bin.WithVersionOverride(version),
		bin.WithIncludeStdlib(true), bin.WithShortPURLS(true))
	if err != nil {
		return nil, err
	}
	bom, err := g.Generate()
	if err != nil {
		return nil, err
	}
	bom.Metadata.Timestamp = created.Format(time.RFC3339)
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}
