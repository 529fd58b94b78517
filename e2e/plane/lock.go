package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock takes an exclusive lock on a file, which the kernel releases should this process die. It
// calls waiting once when another process holds it, and gives up with ctx; a blocking flock could
// not.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	err = Poll(ctx, 24*time.Hour, func(context.Context) (bool, error) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err == nil, err
		}
		if !told {
			waiting()
			told = true
		}
		return false, nil
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	return func() { f.Close() }, nil
}
