package main

import (
	"strings"

	"sigs.k8s.io/yaml"
)

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

const (
	short = "Show what a delete takes along, and why objects stay"
	long  = `Shows what a delete would do before it is done, in what order and who decides; why an object is not going, and who has
to act; who owns an object and what it owns; all that is being deleted; and objects whose owners are gone. It lists with your
own rights, needs nothing in the cluster, and changes nothing. "kubectl weir ui" serves all of it as a page on your machine.
`
)

// krew writes the manifest of the plugin.
func (r *release) krew() error {
	m := manifest{
		APIVersion: "krew.googlecontainertools.github.com/v1alpha2", Kind: "Plugin",
		Metadata: map[string]string{"name": "weir"},
		Spec:     spec{Version: r.version, Homepage: repository, ShortDescription: short, Description: long},
	}
	for _, name := range r.of(programs[1].platforms) {
		archive := r.archives["kubectl-weir "+name]
		system, arch, _ := strings.Cut(name, "/")
		p := platform{URI: r.url + archive, SHA256: r.sums[archive], Bin: executable("kubectl-weir", system)}
		p.Selector.MatchLabels = map[string]string{"os": system, "arch": arch}
		p.Files = []file{{From: p.Bin, To: "."}, {From: "LICENSE", To: "."}}
		m.Spec.Platforms = append(m.Spec.Platforms, p)
	}
	data, err := yaml.Marshal(m)
	if err != nil {
		return err
	}
	return r.put("weir.yaml", data)
}
