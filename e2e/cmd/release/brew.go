package main

import (
	"bytes"
	"strings"
	"text/template"
)

// recipe is a formula of Homebrew: weir, and the plugin beside it.
var recipe = template.Must(template.New("").Parse(`class Weir < Formula
  desc "{{.Short}}"
  homepage "{{.Homepage}}"
  version "{{.Version}}"
  license "Apache-2.0"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Arches}}
    on_{{.Name}} do
      url "{{.Weir.URL}}"
      sha256 "{{.Weir.SHA256}}"

      resource "kubectl-weir" do
        url "{{.Plugin.URL}}"
        sha256 "{{.Plugin.SHA256}}"
      end
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "weir"
    resource("kubectl-weir").stage { bin.install "kubectl-weir" }
  end

  test do
    assert_match "v#{version}", shell_output("#{bin}/weir version")
    assert_match "v#{version}", shell_output("#{bin}/kubectl-weir --version")
  end
end
`))

// formula writes the formula.
func (r *release) formula() error {
	type download struct{ URL, SHA256 string }
	type arch struct {
		Name         string
		Weir, Plugin download
	}
	type system struct {
		Name   string
		Arches []arch
	}
	of := func(program, platform string) download {
		name := r.archives[program+" "+platform]
		return download{r.url + name, r.sums[name]}
	}
	var systems []system
	for _, s := range [][2]string{{"macos", "darwin"}, {"linux", "linux"}} {
		one := system{Name: s[0]}
		for _, a := range [][2]string{{"arm", "arm64"}, {"intel", "amd64"}} {
			if p := s[1] + "/" + a[1]; r.archives["weir "+p] != "" {
				one.Arches = append(one.Arches, arch{a[0], of("weir", p), of("kubectl-weir", p)})
			}
		}
		if len(one.Arches) > 0 {
			systems = append(systems, one)
		}
	}
	var out bytes.Buffer
	if err := recipe.Execute(&out, map[string]any{"Short": short, "Homepage": repository,
		"Version": strings.TrimPrefix(r.version, "v"), "Systems": systems}); err != nil {
		return err
	}
	return r.put("weir.rb", out.Bytes())
}
