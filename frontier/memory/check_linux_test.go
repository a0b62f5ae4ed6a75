package memory

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestCheckReadOnly: a check needs no writing, not even of the lock, where
// nobody can write; a lock that is held counts there too.
func TestCheckReadOnly(t *testing.T) {
	for _, locked := range []bool{false, true} {
		dir, _ := crawled(t)
		lock := filepath.Join(dir, lockName)
		if !locked {
			if err := os.Remove(lock); err != nil {
				t.Fatal(err)
			}
		}
		mnt := t.TempDir()
		if err := syscall.Mount(dir, mnt, "", syscall.MS_BIND, ""); err != nil {
			t.Skip("no mounting here: ", err)
		}
		t.Cleanup(func() { syscall.Unmount(mnt, syscall.MNT_DETACH) })
		if err := syscall.Mount("", mnt, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Skip("no mounting here: ", err)
		}
		c, err := Check(mnt)
		if err != nil || c.Faulty != 0 {
			t.Fatalf("%+v %v", c, err)
		}
		if !locked {
			continue
		}
		held, err := lockFile(lock)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Check(mnt); !errors.Is(err, ErrInUse) {
			t.Errorf("in use by another mount: %v", err)
		}
		held.Close()
	}
}
