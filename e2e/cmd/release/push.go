package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// runPush writes the image.
func runPush(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("push", flag.ContinueOnError)
	dir := fs.String("dir", "bin/release", "the release")
	to := fs.String("to", "", "registry, name and tag of the image")
	if err := fs.Parse(args); err != nil {
		return err
	}
	tag, err := name.NewTag(*to)
	if err != nil {
		return fmt.Errorf("--to %q: %w", *to, err)
	}
	digest, err := push(ctx, *dir, tag)
	if err != nil {
		return err
	}
	fmt.Printf("%s@%s\n", tag, digest)
	return nil
}

// push returns the digest of the image.
func push(ctx context.Context, dir string, tag name.Tag) (string, error) {
	made, err := open(dir)
	if err != nil {
		return "", err
	}
	defer made.close()
	err = remote.WriteIndex(tag, made.index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return "", err
	}
	digest, err := made.index.Digest()
	return digest.String(), err
}

// runServe is a registry in this process until it ends. It prints its address.
func runServe(ctx context.Context, args []string) error {
	fs := flag.NewFlagSet("serve", flag.ContinueOnError)
	dir := fs.String("dir", "bin/release", "the release")
	if err := fs.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	tag, err := name.NewTag(l.Addr().String() + "/weir-dev/weir:release")
	if err != nil {
		return err
	}
	if _, err := push(ctx, *dir, tag); err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, l.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return s.Close()
	}
}
