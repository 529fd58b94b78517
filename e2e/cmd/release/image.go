package main

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"time"
)

// runImage writes a static binary on an empty base, for several platforms, in one archive. It does
// so for Weir, and for the programs that tests run in a cluster.
func runImage(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("image", flag.ContinueOnError)
	var (
		source    = fs.String("source", ".", "directory of the program's module")
		pkg       = fs.String("package", ".", "package of the program in its module")
		title     = fs.String("program", "weir", "what the program is called in the image")
		out       = fs.String("out", "bin/weir-image.tar", "archive to write")
		name      = fs.String("name", "localhost/weir:dev", "name under which the image is loaded, with registry and tag")
		version   = fs.String("version", "dev", "what weir version prints")
		revision  = fs.String("revision", "", "commit that it is built from, for the image's labels")
		platforms = fs.String("platforms", "linux/amd64,linux/arm64", "platforms, the first of which is what docker load takes")
		created   = fs.Int64("created", 0, "seconds since 1970: the time of all that is in the image")
	)
	if err := fs.Parse(args); err != nil {
		return err
	}
	var images []platformImage
	for _, p := range strings.Split(*platforms, ",") {
		os, arch, ok := strings.Cut(p, "/")
		if !ok || os == "" || arch == "" {
			return fmt.Errorf("--platforms %q: must be like linux/amd64,linux/arm64", *platforms)
		}
		binary, err := compile(ctx, program{dir: *source, pkg: *pkg, os: os, arch: arch, version: *version})
		if err != nil {
			return err
		}
		images = append(images, platformImage{os: os, arch: arch, binary: binary})
	}
	a, err := assemble(images, about{program: *title, name: *name, version: *version, revision: *revision, created: time.Unix(*created, 0).UTC()})
	if err != nil {
		return err
	}
	digest, err := a.write(*out)
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s in %s\n", *name, digest, *out)
	return nil
}
