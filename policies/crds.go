package policies

import "embed"

// CRDs are the CustomResourceDefinitions of the policies, of HeldCollections and of the archive, one
// file each in the directory crds.
//
//go:embed crds/*.yaml
var CRDs embed.FS
