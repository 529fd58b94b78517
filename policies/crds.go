package policies

import "embed"

// CRDs are the CustomResourceDefinitions of the policies and of HeldCollections, one file each in
// the directory crds.
//
//go:embed crds/*.yaml
var CRDs embed.FS
