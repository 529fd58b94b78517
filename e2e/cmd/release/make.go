package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// programs are what a release has archives of.
var programs = []struct {
	name, pkg string
	platforms []string
}{
	{"weir", ".", []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64"}},
	{"kubectl-weir", "./cmd/kubectl-weir", []string{
		"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64",
	}},
}

// imagePlatforms are those of weir's that the image has.
var imagePlatforms = []string{"linux/amd64", "linux/arm64"}

const sums = "SHA256SUMS"

// release is what is being made.
type release struct {
	source, version, revision, registry, url string
	created                                  time.Time

	platforms []string // empty: all of programs

	dir    string            // all of it is written here
	sums   map[string]string // of each file in dir, in hexadecimal
	images []platformImage
	// archives are those of programs, by name and platform: weir linux/amd64.
	archives map[string]string
	notes    []byte
}

func runMake(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("make", flag.ContinueOnError)
	r := release{sums: map[string]string{}, archives: map[string]string{}}
	fs.StringVar(&r.source, "source", "../../..", "the sources")
	out := fs.String("out", "", "the folder to write; a release that is there is replaced")
	fs.StringVar(&r.version, "version", "", "the version, as in v1.2.3, which charts/weir/Chart.yaml has")
	fs.StringVar(&r.revision, "revision", "", "the commit that it is made of")
	fs.StringVar(&r.registry, "registry", "", "where image and chart will be, as in ghcr.io/weir-dev")
	fs.StringVar(&r.url, "url", "", "where the files will be: https://…/, without their names")
	only := fs.String("platforms", "", "to be quick, only these of the platforms, as in linux/amd64,linux/arm64")
	created := fs.Int64("created", 0, "seconds since 1970: the time of all that is in it")
	if err := fs.Parse(args); err != nil {
		return err
	}
	r.platforms = strings.FieldsFunc(*only, func(c rune) bool { return c == ',' })
	r.created = time.Unix(*created, 0).UTC()
	if err := r.check(*out); err != nil {
		return err
	}
	var err error
	if r.dir, err = os.MkdirTemp(filepath.Dir(filepath.Clean(*out)), ".release-"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(r.dir) }() // it has been renamed, or there was an error
	if err := r.make(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.Chmod(r.dir, 0o755), os.RemoveAll(*out)); err != nil {
		return err
	}
	if err := os.Rename(r.dir, *out); err != nil {
		return err
	}
	fmt.Printf("%s is in %s: %d files, %s %s\n", r.version, *out, len(r.sums), sums, r.sums[sums])
	return nil
}

func (r *release) check(out string) error {
	if !strings.HasPrefix(r.version, "v") {
		return fmt.Errorf("--version %q: must be one as in v1.2.3", r.version)
	}
	if !strings.HasPrefix(r.url, "https://") || !strings.HasSuffix(r.url, "/") {
		return fmt.Errorf("--url %q: must be the folder of the files, as in https://example.com/weir/v1.2.3/", r.url)
	}
	if r.registry == "" || out == "" {
		return errors.New("--registry and --out must be set")
	}
	// What takes no time is checked before all is built.
	if err := r.checkSources(); err != nil {
		return err
	}
	there, err := os.ReadDir(out)
	if errors.Is(err, fs.ErrNotExist) {
		return os.MkdirAll(filepath.Dir(filepath.Clean(out)), 0o755)
	}
	isSums := func(d fs.DirEntry) bool { return d.Name() == sums }
	if err == nil && len(there) > 0 && !slices.ContainsFunc(there, isSums) {
		return fmt.Errorf("--out %s: there are files, but no %s: it is no release that can be replaced", out, sums)
	}
	return err
}

// checkSources checks that the sources are those of the version.
func (r *release) checkSources() error {
	for _, name := range []string{"Chart.yaml", "values.yaml"} {
		data, err := os.ReadFile(filepath.Join(r.source, "charts", "weir", name))
		if err != nil {
			return err
		}
		if _, err := r.pinned(name, data, v1.Hash{}); err != nil {
			return err
		}
	}
	return r.readNotes()
}

// make writes the files, each after those whose digests it has.
func (r *release) make(ctx context.Context) error {
	for _, p := range programs {
		for _, platform := range r.of(p.platforms) {
			if err := r.program(ctx, p.name, p.pkg, platform); err != nil {
				return err
			}
		}
	}
	image, err := assemble(r.images, about{program: "weir", name: r.image(), version: r.version,
		revision: r.revision, created: r.created})
	if err != nil {
		return err
	}
	digest, err := image.index.Digest()
	if err != nil {
		return err
	}
	for _, write := range []func() error{
		func() error { return r.chart(ctx, digest) },
		r.krew,
		func() error { return r.put("NOTES.md", r.notes) },
	} {
		if err := write(); err != nil {
			return err
		}
	}
	statement, err := r.provenance(digest)
	if err != nil {
		return err
	}
	if err := r.put(r.named("intoto.json"), statement); err != nil {
		return err
	}
	data, err := image.tar()
	if err != nil {
		return err
	}
	if err := r.put(r.named("image.tar"), data); err != nil {
		return err
	}
	return r.sumUp()
}

// of are those of the platforms that are built.
func (r *release) of(platforms []string) []string {
	if len(r.platforms) == 0 {
		return platforms
	}
	return slices.DeleteFunc(slices.Clone(platforms), func(p string) bool { return !slices.Contains(r.platforms, p) })
}

// image is how the image is called.
func (r *release) image() string { return r.registry + "/weir:" + r.version }

func (r *release) named(end string) string { return "weir-" + r.version + "." + end }

// program builds a program for a platform, and writes its archive and its SBOM.
func (r *release) program(ctx context.Context, name, pkg, platform string) error {
	system, arch, _ := strings.Cut(platform, "/")
	binary, err := compile(ctx, r.source, pkg, system, arch, r.version)
	if err != nil {
		return err
	}
	bom, err := sbom(binary, name, r.version, r.created)
	if err != nil {
		return fmt.Errorf("list what is in %s for %s: %w", name, platform, err)
	}
	if name == "weir" && slices.Contains(imagePlatforms, platform) {
		r.images = append(r.images, platformImage{os: system, arch: arch, binary: binary})
	}
	license, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return err
	}
	archive := fmt.Sprintf("%s-%s-%s-%s.tar.gz", name, r.version, system, arch)
	data, err := zipped([]entry{{executable(name, system), 0o755, binary}, {"LICENSE", 0o644, license}}, r.created)
	if err != nil {
		return err
	}
	r.archives[name+" "+platform] = archive
	return errors.Join(r.put(archive, data), r.put(strings.TrimSuffix(archive, ".tar.gz")+".cdx.json", bom))
}

func executable(name, system string) string {
	if system == "windows" {
		return name + ".exe"
	}
	return name
}

// put writes a file.
func (r *release) put(name string, data []byte) error {
	r.sums[name] = fmt.Sprintf("%x", sha256.Sum256(data))
	return os.WriteFile(filepath.Join(r.dir, name), data, 0o644)
}

// sumUp writes SHA256SUMS, which sha256sum --check reads.
func (r *release) sumUp() error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(r.sums)) {
		fmt.Fprintf(&b, "%s  %s\n", r.sums[name], name)
	}
	return r.put(sums, b.Bytes())
}

// readNotes reads the release notes: what the changelog says of the version.
func (r *release) readNotes() error {
	changelog, err := os.ReadFile(filepath.Join(r.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := section(string(changelog), r.version)
	r.notes = []byte(text)
	return err
}

// section is what is below the heading of a version.
func section(changelog, version string) (string, error) {
	heading := regexp.MustCompile(`(?m)^## ` + regexp.QuoteMeta(version) + `(?:[ ,].*)?\n`).FindStringIndex(changelog)
	if heading == nil {
		return "", fmt.Errorf("CHANGELOG.md has no heading ## %s", version)
	}
	text, _, _ := strings.Cut(changelog[heading[1]:], "\n## ")
	return strings.TrimSpace(text) + "\n", nil
}
