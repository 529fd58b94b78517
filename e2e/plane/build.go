package plane

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
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
	inFolder := map[string][]Part{}
	for _, part := range parts {
		r, ok := recipes[part]
		if !ok {
			return nil, fmt.Errorf("build %s: no such part", part)
		}
		in := folder(r, part)
		inFolder[in] = append(inFolder[in], part)
	}
	for in, parts := range inFolder {
		m, err := openModule(ctx, filepath.Join(root, in))
		if err != nil {
			return nil, err
		}
		if err := m.ensure(ctx, out, parts, bins); err != nil {
			return nil, fmt.Errorf("build %v: %w", parts, err)
		}
	}
	return bins, nil
}

// ensure adds the paths of a module's parts to bins, and builds those first that are not there.
func (m module) ensure(ctx context.Context, out io.Writer, parts []Part, bins Binaries) error {
	cache, err := cacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, m.key)
	for _, part := range parts {
		bins[part] = filepath.Join(dir, string(part))
	}
	missing := func() []Part {
		return slices.DeleteFunc(slices.Clone(parts), func(p Part) bool { return exists(bins[p]) })
	}
	if len(missing()) == 0 {
		now := time.Now()
		// Best effort: a cache that cannot be touched can still be used.
		_ = os.Chtimes(dir, now, now)
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, filepath.Join(cache, "lock"), func() {
		fmt.Fprintf(out, "plane: waiting for another process that builds\n")
	})
	if err != nil {
		return err
	}
	defer unlock()
	wanted := missing() // of another process that built meanwhile
	prune(cache, m.key)
	programs := slices.DeleteFunc(slices.Clone(wanted), func(p Part) bool { return p == E2ETest })
	if err := m.build(ctx, out, dir, goBuild, programs); err != nil || len(programs) == len(wanted) {
		return err
	}
	return m.build(ctx, out, dir, goTest, []Part{E2ETest})
}

// build makes several parts by one go command, which links one while it compiles for another. It
// writes to a temporary directory and renames: whoever sees a path sees a whole binary.
func (m module) build(ctx context.Context, out io.Writer, dir string, command []string, parts []Part) error {
	if len(parts) == 0 {
		return nil
	}
	tmp, err := os.MkdirTemp(dir, "build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // a temporary directory that stays is no failure
	args := slices.Concat(command, []string{"-ldflags", m.ldflags, "-o", tmp + string(filepath.Separator)})
	names := make([]string, len(parts))
	for i, part := range parts {
		args, names[i] = append(args, recipes[part].pkg), string(part)
	}
	what := strings.Join(names, ", ")
	var log bytes.Buffer
	cmd := goCommand(ctx, m.dir, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	started := time.Now()
	fmt.Fprintf(out, "plane: building %s (kept for the next time)\n", what)
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
			fmt.Fprintf(out, "plane: building %s, %d s\n", what, int(time.Since(started).Seconds()))
		case err := <-done:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				return fmt.Errorf("%w\n%s", err, bytes.TrimSpace(log.Bytes()))
			}
			fmt.Fprintf(out, "plane: built %s in %.0f s\n", what, time.Since(started).Seconds())
			for _, part := range parts {
				if err := os.Rename(filepath.Join(tmp, recipes[part].binary()), filepath.Join(dir, string(part))); err != nil {
					return fmt.Errorf("the go command wrote no binary: %w", err)
				}
			}
			return nil
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
