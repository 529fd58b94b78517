package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/x509"
	"debug/buildinfo"
	"encoding/pem"
	"errors"
	"flag"
	"io"
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
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"
)

var there = flag.String("release", "", "the release that is checked; empty: one of the small program in testdata")

const (
	releaseURL = "https://example.com/weir/"
	sources    = "../../.."
)

// madeRelease makes a release of small programs, with the real chart and changelog, in folders of
// its own. It is signed with a key that is thrown away, whose public half is returned.
func madeRelease(t *testing.T) (dir, public string) {
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
	dir = filepath.Join(t.TempDir(), "release")
	key, public := keys(t, 1)
	args := makeArgs(t, source, dir, "--key", key, "--platforms", "linux/amd64,linux/arm64")
	if err := runMake(t.Context(), args); err != nil {
		t.Fatal(err)
	}
	return dir, public
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

// keys are files of a key made of one byte.
func keys(t *testing.T, seed byte) (private, public string) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	write := func(name, kind string, der []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	private = write("private.pem", "PRIVATE KEY", der, err)
	der, err = x509.MarshalPKIXPublicKey(key.Public())
	return private, write("public.pem", "PUBLIC KEY", der, err)
}

// TestReleaseCanBeChecked: what each part of a release says is true, of the release that -release
// names, or of a small one, which is made twice.
func TestReleaseCanBeChecked(t *testing.T) {
	dir := *there
	if dir == "" {
		var public string
		dir, public = madeRelease(t)
		again, _ := madeRelease(t)
		if diff := cmp.Diff(read(t, dir, sums), read(t, again, sums)); diff != "" {
			t.Errorf("made again in another folder, it is another release (-first +second):\n%s", diff)
		}
		signatureHolds(t, dir, public)
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
	referrersAreServed(t, o)
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

func signatureHolds(t *testing.T, dir, public string) {
	t.Helper()
	if err := runVerify(t.Context(), []string{"--dir", dir, "--key", public}); err != nil {
		t.Error(err)
	}
	_, other := keys(t, 2)
	if err := runVerify(t.Context(), []string{"--dir", dir, "--key", other}); err == nil {
		t.Error("it is verified with the key of another")
	}
	o, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer o.close()
	changed := bytes.Replace(o.signature, []byte(`"payload":"ew`), []byte(`"payload":"ex`), 1)
	if bytes.Equal(changed, o.signature) || verifySignature(t.Context(), changed, o.stated, public) == nil {
		t.Error("one changed byte of what is signed is not found")
	}
	stated := append([]byte(" "), o.stated...)
	if err := verifySignature(t.Context(), o.signature, stated, public); err == nil {
		t.Error("another statement than the one that was signed is taken")
	}
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
	var out []entry
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, entry{h.Name, h.Mode, data})
	}
}

// referrersAreServed: who has an image's digest finds its SBOM, and from the index the provenance
// and the signature.
func referrersAreServed(t *testing.T, o *opened) {
	t.Helper()
	server := httptest.NewServer(newRegistry())
	defer server.Close()
	tag, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/weir-dev/weir:release")
	if err != nil {
		t.Fatal(err)
	}
	digest, err := push(t.Context(), o.dir, tag)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{provenanceType + " " + string(o.stated)}
	if o.signature != nil {
		want = append(want, signatureType+" "+string(o.signature))
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, referring(t, tag.Digest(digest))); diff != "" {
		t.Errorf("what refers to the index (-want +got):\n%s", diff)
	}
	m, err := o.index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range m.Manifests {
		bom := read(t, o.dir, "weir-"+version(t)+"-"+d.Platform.OS+"-"+d.Platform.Architecture+".cdx.json")
		if diff := cmp.Diff([]string{sbomType + " " + bom}, referring(t, tag.Digest(d.Digest.String()))); diff != "" {
			t.Errorf("what refers to the image of %s (-want +got):\n%s", d.Platform, diff)
		}
	}
}

// referring are type and file of each that refers to an image.
func referring(t *testing.T, to name.Digest) []string {
	t.Helper()
	index, err := remote.Referrers(to)
	if err != nil {
		t.Fatal(err)
	}
	m, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range m.Manifests {
		img, err := remote.Image(to.Context().Digest(d.Digest.String()))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d.ArtifactType+" "+string(onlyLayer(t, img)))
	}
	slices.Sort(out)
	return out
}

func onlyLayer(t *testing.T, img v1.Image) []byte {
	t.Helper()
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("%d layers: %v", len(layers), err)
	}
	r, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// downloadsAreTrue: what krew and Homebrew would download is there, with the sums that they check,
// and runs here as the version that they say.
func downloadsAreTrue(t *testing.T, o *opened) {
	t.Helper()
	var m manifest
	if err := yaml.UnmarshalStrict([]byte(read(t, o.dir, "weir.yaml")), &m); err != nil {
		t.Fatal(err)
	}
	if s := m.Spec; m.Metadata["name"] != "weir" || s.Version != version(t) || len(s.ShortDescription) > 60 || len(s.Platforms) == 0 {
		t.Errorf("the manifest is %+v", m)
	}
	formula := read(t, o.dir, "weir.rb")
	for _, p := range m.Spec.Platforms {
		archive := p.URI[strings.LastIndex(p.URI, "/")+1:]
		if o.sums[archive] != p.SHA256 {
			t.Errorf("krew: sha256 of %s is %s", archive, p.SHA256)
		}
		system := p.Selector.MatchLabels["os"]
		for _, of := range []string{archive, strings.TrimPrefix(archive, "kubectl-")} {
			named := strings.Contains(formula, of+"\"\n") && strings.Contains(formula, "\""+o.sums[of]+"\"\n")
			if system != "windows" && !named {
				t.Errorf("the formula has no %s with its sum %s:\n%s", of, o.sums[of], formula)
			}
		}
		entries := unzipped(t, filepath.Join(o.dir, archive))
		if len(entries) != 2 || entries[0].name != p.Bin || entries[1].name != "LICENSE" {
			t.Errorf("%s has %d files, not %s and LICENSE", archive, len(entries), p.Bin)
		}
		if system != runtime.GOOS || p.Selector.MatchLabels["arch"] != runtime.GOARCH {
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
