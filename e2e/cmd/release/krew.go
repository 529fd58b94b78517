package main

import (
	"strings"

	"sigs.k8s.io/yaml"
)

const short = "Show what a delete takes along, and why objects stay"

const long = `Shows what a delete would do before it is done, in what order and who decides; why an object is not going, and who has
to act; who owns an object and what it owns; all that is being deleted; and objects whose owners are gone. It lists with your
own rights, needs nothing in the cluster, and changes nothing. "kubectl weir ui" serves all of it as a page on your machine.
`

// krew writes the manifest of the plugin, as krew reads it.
func (r *release) krew() error {
	type m = map[string]any
	var platforms []m
	for _, name := range r.of(programs[1].platforms) {
		archive := r.archives["kubectl-weir "+name]
		system, arch, _ := strings.Cut(name, "/")
		bin := executable("kubectl-weir", system)
		platforms = append(platforms, m{"selector": m{"matchLabels": m{"os": system, "arch": arch}},
			"uri": r.url + archive, "sha256": r.sums[archive], "bin": bin,
			"files": []m{{"from": bin, "to": "."}, {"from": "LICENSE", "to": "."}}})
	}
	data, err := yaml.Marshal(m{"apiVersion": "krew.googlecontainertools.github.com/v1alpha2", "kind": "Plugin",
		"metadata": m{"name": "weir"},
		"spec": m{"version": r.version, "homepage": repository, "shortDescription": short, "description": long,
			"platforms": platforms}})
	if err != nil {
		return err
	}
	return r.put("weir.yaml", data)
}
