package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	provenancev1 "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	repository          = "https://github.com/weir-dev/weir"
	provenancePredicate = "https://slsa.dev/provenance/v1"
)

// provenance states of the image and of each file so far from what and how it was made (SLSA v1).
// Anyone can make the same statement: who made it, and where, is said by who signs it.
func (r *release) provenance(index v1.Hash) ([]byte, error) {
	subject := func(name, sum string) *intoto.ResourceDescriptor {
		return &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}}
	}
	subjects := []*intoto.ResourceDescriptor{subject(r.registry+"/weir", index.Hex)}
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		subjects = append(subjects, subject(name, r.sums[name]))
	}
	how, err := structpb.NewStruct(map[string]any{
		"version": r.version, "registry": r.registry, "url": r.url, "time": r.created.Format(time.RFC3339),
	})
	if err != nil {
		return nil, err
	}
	source := &intoto.ResourceDescriptor{Uri: "git+" + repository + "@refs/tags/" + r.version}
	if r.revision != "" {
		source.Digest = map[string]string{"gitCommit": r.revision}
	}
	predicate, err := asStruct(&provenancev1.Provenance{
		BuildDefinition: &provenancev1.BuildDefinition{
			BuildType: repository + "/blob/main/docs/releasing.md#make-release", ExternalParameters: how,
			ResolvedDependencies: []*intoto.ResourceDescriptor{
				source, {Uri: "pkg:golang/toolchain@" + runtime.Version()},
			},
		},
		RunDetails: &provenancev1.RunDetails{
			Builder:  &provenancev1.Builder{Id: repository + "/blob/main/docs/releasing.md#anyone"},
			Metadata: &provenancev1.BuildMetadata{StartedOn: timestamppb.New(r.created)},
		},
	})
	if err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, Subject: subjects,
		PredicateType: provenancePredicate, Predicate: predicate}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("state the provenance: %w", err)
	}
	return asJSON(s)
}

func asStruct(m proto.Message) (*structpb.Struct, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	s := &structpb.Struct{}
	return s, protojson.Unmarshal(data, s)
}

// asJSON is protojson without the spaces that it puts in by chance.
func asJSON(m proto.Message) ([]byte, error) {
	data, err := protojson.Marshal(m)
	if err != nil {
		return nil, err
	}
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return nil, err
	}
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
