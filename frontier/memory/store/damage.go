package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
)

// DamageError says that a file is not what was written.
type DamageError struct {
	File string
	What string
	Do   string // what repairs it, "" = only a copy does
}

func (e *DamageError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.File, e.What) }

// LostError: a write or a sync failed, and with it the store.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("store: %v; what was done lately may not be on the disk, so nothing more is done: mend the disk and start again, it goes on from what the disk has", e.Err)
}

// Unwrap is what failed.
func (e *LostError) Unwrap() error { return e.Err }

// fileName finds a file of Pebble in the text of an error.
var fileName = regexp.MustCompile(`MANIFEST-\d+|\b(\d{6,})(\.(?:sst|log|blob))?\b`)

// damage turns an error of Pebble that tells of damage into one that names the
// file.
func (s *Store) damage(err error) error {
	if err == nil {
		return nil
	}
	text, _, _ := strings.Cut(err.Error(), "\n")
	var errno syscall.Errno
	if errors.As(err, &errno) && errno != syscall.ENOENT { // the disk, or the rights to it
		return fmt.Errorf("store: %w", err)
	}
	if info := pebble.ExtractDataCorruptionInfo(err); info != nil && info.Path != "" {
		return &DamageError{File: info.Path, What: text}
	}
	if m := fileName.FindStringSubmatch(text); m != nil {
		name := m[0]
		if m[1] != "" && m[2] == "" {
			name += ".sst"
		}
		return &DamageError{File: filepath.Join(s.cfg.Dir, name), What: text}
	}
	if pebble.IsCorruptionError(err) {
		return &DamageError{File: s.cfg.Dir, What: text}
	}
	return fmt.Errorf("store: %s", text)
}

// badOptions is the damage of a file of options, nil when there is none. Nothing of the
// crawl is in these files: Pebble writes a new one.
func (s *Store) badOptions(o *pebble.Options) error {
	o = o.Clone()
	o.EnsureDefaults()
	names, err := filepath.Glob(filepath.Join(s.cfg.Dir, "OPTIONS-*"))
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil {
			err = o.CheckCompatibility(s.cfg.Dir, string(text))
		}
		if err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return &DamageError{File: name, What: first, Do: "remove it: nothing of the crawl is in it"}
		}
	}
	return err
}

// plain refuses what is no regular file in the place of one: to open a pipe could
// wait for ever.
func plain(dir string) error {
	names, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if !n.Type().IsRegular() {
			return &DamageError{File: filepath.Join(dir, n.Name()), What: "it is no regular file"}
		}
	}
	return err
}

// logger is what Pebble tells of itself. What it takes for the end of the process
// is the end of the store.
type logger Store

func (*logger) Infof(string, ...any) {}

func (l *logger) Errorf(format string, args ...any) {
	l.cfg.Logger.Error("store: " + firstLine(format, args))
}

func (l *logger) Fatalf(format string, args ...any) {
	(*Store)(l).fail(errors.New(firstLine(format, args)))
}

// firstLine is what a person reads, without where in Pebble it comes from.
func firstLine(format string, args []any) string {
	text, _, _ := strings.Cut(fmt.Sprintf(strings.ReplaceAll(format, "%+v", "%v"), args...), "\n")
	return text
}
