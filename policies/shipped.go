package policies

import "embed"

// Shipped are the policies that come with Weir: files to read, to copy, and to give to --policy-dir.
//
//go:embed *.yaml
var Shipped embed.FS
