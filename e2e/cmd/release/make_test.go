package main

import (
	"bytes"
	"compress/gzip"
	"debug/buildinfo"
	"flag"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"sigs.k8s.io/yaml"
)

var there = flag.String("release", "", "the release that is checked; empty: one of the small program in testdata")

const (
	releaseURL = "https://example.com/weir/"
	sources    = "../../.."
)

// madeRelease makes a release of small programs, with the real chart and changelog, in folders of
// its own.
func madeRelease(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	if err := os.CopyFS(source, os.DirFS("testdata/program")); err != nil {
		t.Fatal(err)
	}
	for _, shared := range []string{"charts", "LICENSE", "CHANGELOG.md"} {
		path, err := filepath.Abs(filepath.Join(sources, shared))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(source, shared)); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "release")
	if err := runMake(t.Context(), makeArgs(t, source, dir, "--platforms", "linux/amd64,linux/arm64")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func makeArgs(t *testing.T, source, dir string, more ...string) []string {
	t.Helper()
	return append([]string{"--source", source, "--out", dir, "--version", version(t), "--revision", "abc",
		"--created", "1700000000", "--registry", "registry.example.com/weir-dev", "--url", releaseURL}, more...)
}

// version is that of the chart.
func version(t *testing.T) string {
	t.Helper()
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	data, err := os.ReadFile(filepath.Join(sources, "charts/weir/Chart.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &chart); err != nil {
		t.Fatal(err)
	}
	return "v" + chart.AppVersion
}

// TestReleaseCanBeChecked: what each part of a release says is true, of the release that -release
// names, or of a small one, which is made twice.
func TestReleaseCanBeChecked(t *testing.T) {
	dir := *there
	if dir == "" {
		dir = madeRelease(t)
		if diff := cmp.Diff(read(t, dir, sums), read(t, madeRelease(t), sums)); diff != "" {
			t.Errorf("made again in another folder, it is another release (-first +second):\n%s", diff)
		}
	}
	o, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	if err := o.verify(); err != nil {
		t.Fatal(err)
	}
	for file := range o.sums {
		if base, ok := strings.CutSuffix(file, ".cdx.json"); ok {
			sbomIsTrue(t, o, base)
		}
	}
	imageIsServed(t, o)
	downloadsAreTrue(t, o)
	oneChangedByteIsFound(t, o)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// sbomIsTrue compares an SBOM with what go version -m prints of the binary.
func sbomIsTrue(t *testing.T, o *opened, base string) {
	t.Helper()
	var bom cyclonedx.BOM
	file := strings.NewReader(read(t, o.dir, base+".cdx.json"))
	if err := cyclonedx.NewBOMDecoder(file, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.Read(bytes.NewReader(unzipped(t, filepath.Join(o.dir, base+".tar.gz"))[0].data))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"std@" + info.GoVersion}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		want = append(want, m.Path+"@"+m.Version)
	}
	var got []string
	for _, c := range *bom.Components {
		got = append(got, c.Name+"@"+c.Version)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("components of %s (-go version -m +SBOM):\n%s", base, diff)
	}
	built := o.statement.Predicate.Fields["buildDefinition"].GetStructValue()
	when := built.Fields["externalParameters"].GetStructValue().Fields["time"].GetStringValue()
	if bom.SerialNumber != "" || bom.Metadata.Timestamp != when {
		t.Errorf("SBOM of %s: serial number %q, time %q", base, bom.SerialNumber, bom.Metadata.Timestamp)
	}
	if main := bom.Metadata.Component; main.Name != info.Main.Path || main.Version != version(t) {
		t.Errorf("SBOM of %s is of %s %s", base, main.Name, main.Version)
	}
}

func unzipped(t *testing.T, path string) []entry {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := untarred(z)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// imageIsServed: what is pushed is the image of the release.
func imageIsServed(t *testing.T, o *opened) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/weir-dev/weir:release")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := push(t.Context(), o.dir, tag)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(tag)
	if err == nil {
		err = validate.Index(index)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, err := index.Digest(); err != nil || got.String() != digest || !strings.Contains(string(o.stated), got.Hex) {
		t.Errorf("the registry has %s (%v), and pushed was %s", got, err, digest)
	}
}

// downloadsAreTrue: what krew would download is there, with the sums that it checks, and runs here as
// the version that it says.
func downloadsAreTrue(t *testing.T, o *opened) {
	t.Helper()
	var m struct {
		Spec struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, o.dir, "weir.yaml")), &m); err != nil {
		t.Fatal(err)
	}
	if s := m.Spec; s.Version != version(t) || len(s.ShortDescription) > 60 || len(s.Platforms) == 0 {
		t.Errorf("the manifest is %+v", m)
	}
	for _, p := range m.Spec.Platforms {
		archive := p.URI[strings.LastIndex(p.URI, "/")+1:]
		if o.sums[archive] != p.SHA256 {
			t.Errorf("krew: sha256 of %s is %s", archive, p.SHA256)
		}
		entries := unzipped(t, filepath.Join(o.dir, archive))
		if len(entries) != 2 || entries[0].name != p.Bin || entries[1].name != "LICENSE" {
			t.Errorf("%s has %d files, not %s and LICENSE", archive, len(entries), p.Bin)
		}
		if p.Selector.MatchLabels["os"] != runtime.GOOS || p.Selector.MatchLabels["arch"] != runtime.GOARCH {
			continue
		}
		path := filepath.Join(t.TempDir(), p.Bin)
		if err := os.WriteFile(path, entries[0].data, 0o755); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), path, "--version").CombinedOutput()
		if err != nil || !strings.Contains(string(out), version(t)) {
			t.Errorf("kubectl-weir --version: %v\n%s", err, out)
		}
	}
}

// oneChangedByteIsFound, in each file, in the sums, and in the image.
func oneChangedByteIsFound(t *testing.T, o *opened) {
	t.Helper()
	for _, file := range slices.Sorted(maps.Keys(o.sums)) {
		sum := o.sums[file]
		o.sums[file] = strings.Repeat("0", len(sum))
		if err := o.verify(); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s is changed, and that is not found: %v", file, err)
		}
		o.sums[file] = sum
	}
	o.statement.Subject[0].Digest["sha256"] = strings.Repeat("0", 64)
	if err := o.verify(); err == nil || !strings.Contains(err.Error(), "the provenance is of a") {
		t.Errorf("the provenance is of another image, and that is not found: %v", err)
	}
}

func TestWhatIsNoReleaseIsRefused(t *testing.T) {
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "letters"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		more []string
		want string
	}{
		"a version without v":            {[]string{"--version", "1.2.3"}, "must be one as in v1.2.3"},
		"another version than the chart": {[]string{"--version", "v9.9.9"}, "is not of version v9.9.9"},
		"no secure download":             {[]string{"--url", "http://example.com/"}, "must be the folder of the files"},
		"a download of one file":         {[]string{"--url", "https://example.com/weir"}, "must be the folder of the files"},
		"a folder of something else":     {[]string{"--out", full}, "it is no release that can be replaced"},
		"no registry":                    {[]string{"--registry", ""}, "must be set"},
	} {
		err := runMake(t.Context(), makeArgs(t, sources, filepath.Join(t.TempDir(), "new"), c.more...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReleaseNotesAreTheSectionOfTheVersion(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\n- z\n\n" +
		"## v1.2.3, 2026-12-01\n\n- a\n\n**B**\n\n- c\n\n## v1.2.30\n\n- d\n"
	got, err := section(changelog, "v1.2.3")
	if want := "- a\n\n**B**\n\n- c\n"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := section(changelog, "v1.2"); err == nil {
		t.Error("a version that has no section has notes")
	}
}
