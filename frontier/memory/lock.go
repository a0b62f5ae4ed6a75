//go:build unix

package memory

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// lockFile takes the lock of a directory, which ends with the file or the
// process.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return flock(f)
}

// lockToRead is lockFile for who only reads, where the file system may be
// read-only: a lock that cannot be made there is not needed, and nil.
func lockToRead(path string) (*os.File, error) {
	f, err := lockFile(path)
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, fs.ErrPermission) {
		return f, err
	}
	r, other := os.Open(path)
	if errors.Is(other, fs.ErrNotExist) && errors.Is(err, syscall.EROFS) {
		return nil, nil
	}
	if other != nil {
		return nil, err
	}
	return flock(r) // somebody may write there by another mount
}

// flock locks f, or closes it.
func flock(f *os.File) (*os.File, error) {
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if err == syscall.EWOULDBLOCK {
			return nil, ErrInUse
		}
		return nil, err
	}
	return f, nil
}
