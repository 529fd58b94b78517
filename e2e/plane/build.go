package plane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

const (
	progressEvery = 10 * time.Second
	// keepUnused is how long binaries of versions that no one asks for any
	// more stay in the cache.
	keepUnused = 14 * 24 * time.Hour
)

// Build makes the parts that the cache does not hold and returns where all of
// them are. A cold build takes minutes, so it tells out what it is doing; a
// warm call reads two files and prints nothing. Processes that build at the
// same time wait for one another instead of doing the work twice.
func Build(ctx context.Context, out io.Writer, parts ...Part) (Binaries, error) {
	return buildFrom(ctx, out, recipe.folder, parts)
}

// BuildCurrent is Build whatever KubernetesVariable says.
func BuildCurrent(ctx context.Context, out io.Writer, parts ...Part) (Binaries, error) {
	return buildFrom(ctx, out, func(r recipe, _ Part) string { return r.module }, parts)
}

func buildFrom(ctx context.Context, out io.Writer, folder func(recipe, Part) string, parts []Part) (Binaries, error) {
	root, err := moduleDir(ctx)
	if err != nil {
		return nil, err
	}
	bins := Binaries{}
	modules := map[string]module{}
	for _, part := range parts {
		r, ok := recipes[part]
		if !ok {
			return nil, fmt.Errorf("build %s: no such part", part)
		}
		in := folder(r, part)
		m, ok := modules[in]
		if !ok {
			if m, err = openModule(ctx, filepath.Join(root, in)); err != nil {
				return nil, err
			}
			modules[in] = m
		}
		if bins[part], err = m.ensure(ctx, out, part, r); err != nil {
			return nil, fmt.Errorf("build %s: %w", part, err)
		}
	}
	return bins, nil
}

// ensure returns the path of one part and builds it first when it is not there.
func (m module) ensure(ctx context.Context, out io.Writer, part Part, r recipe) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, m.key)
	path := filepath.Join(dir, string(part))
	if exists(path) {
		now := time.Now()
		// Best effort: a cache that cannot be touched can still be used.
		_ = os.Chtimes(dir, now, now)
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(ctx, filepath.Join(cache, "lock"), func() {
		fmt.Fprintf(out, "plane: waiting for another process that builds\n")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if exists(path) {
		return path, nil
	}
	prune(cache, m.key)
	return path, m.build(ctx, out, part, r, path)
}

// build writes to a temporary name and renames: whoever sees path sees a whole
// binary.
func (m module) build(ctx context.Context, out io.Writer, part Part, r recipe, path string) error {
	tmp := path + ".tmp"
	defer os.Remove(tmp)
	args := append([]string{}, r.command...)
	args = append(args, "-trimpath", "-ldflags", m.ldflags, "-o", tmp, r.pkg)
	var log bytes.Buffer
	cmd := goCommand(ctx, m.dir, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	started := time.Now()
	fmt.Fprintf(out, "plane: building %s (kept for the next time)\n", part)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Fprintf(out, "plane: building %s, %d s\n", part, int(time.Since(started).Seconds()))
		case err := <-done:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(log.Bytes()))
			}
			if !exists(tmp) {
				return errors.New("the go command wrote no binary")
			}
			fmt.Fprintf(out, "plane: built %s in %.0f s\n", part, time.Since(started).Seconds())
			return os.Rename(tmp, path)
		}
	}
}

func cacheDir() (string, error) {
	user, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find the cache: %w", err)
	}
	return filepath.Join(user, "weir-e2e"), nil
}

// prune removes binaries of other versions that were not used for long. It
// runs under the build lock; what it cannot remove only costs space.
func prune(cache, keep string) {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && e.IsDir() && e.Name() != keep && time.Since(info.ModTime()) > keepUnused {
			_ = os.RemoveAll(filepath.Join(cache, e.Name()))
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
