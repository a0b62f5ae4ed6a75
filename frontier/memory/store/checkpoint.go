package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
)

// The checkpoint is a file that says how much of each log was synced, with a checksum
// of that much. It has two places that are written by turns, so that a write that
// is cut short leaves the one before. A log is taken off before it is removed.
//
// Damage that a checkpoint does not show: of what was synced after it was written, half
// a second ago at most.
const (
	checkpointName = "synced"
	checkpointSize = 4096 // of a place: length, checksum, JSON
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// prefix is the first bytes of a file.
type prefix struct {
	Bytes int64  `json:"bytes"`
	CRC   uint32 `json:"crc"`
}

func (p *prefix) append(b []byte) {
	p.Bytes += int64(len(b))
	p.CRC = crc32.Update(p.CRC, castagnoli, b)
}

// synced is what the checkpoint holds.
type synced struct {
	Turn int64             `json:"turn"` // the higher of two is the newer
	Logs map[string]prefix `json:"logs"`
}

// openCheckpoint begins a checkpoint without logs: those that are there were checked, and go.
func (f *files) openCheckpoint(dir string) (err error) {
	if f.checkpoint, err = os.OpenFile(filepath.Join(dir, checkpointName), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// close ends the checkpoint.
func (f *files) close() error {
	if f.checkpoint == nil {
		return nil
	}
	return f.checkpoint.Close()
}

// note writes the checkpoint.
func (f *files) note() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write()
}

// forget takes a log off the checkpoint.
func (f *files) forget(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name = filepath.Base(name); f.logs[name] != nil {
		delete(f.logs, name)
		f.write()
	}
}

// write writes the checkpoint; f.mu is held. A log that is being written to at this
// moment is waited for. That it cannot be written is no reason to end a crawl.
func (f *files) write() {
	if f.checkpoint == nil {
		return
	}
	f.turn++
	m := synced{Turn: f.turn, Logs: map[string]prefix{}}
	for name, l := range f.logs {
		l.mu.Lock()
		m.Logs[name] = l.synced
		l.mu.Unlock()
	}
	text, err := json.Marshal(m)
	if err == nil && len(text) > checkpointSize-8 {
		err = errors.New("too many logs")
	}
	if err == nil {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(text, castagnoli))
		_, err = f.checkpoint.WriteAt(append(b, text...), checkpointSize*(f.turn%2))
	}
	if err != nil {
		f.s.cfg.Logger.Warn("store: how much is on the disk cannot be noted", "err", err)
	}
}

// readCheckpoint reads the newer of what a checkpoint holds; nothing is there before the
// first sync.
func readCheckpoint(dir string) (newest synced, err error) {
	path := filepath.Join(dir, checkpointName)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) || len(b) == 0 && err == nil {
		return newest, nil
	}
	if err != nil {
		return newest, fmt.Errorf("store: %w", err)
	}
	for _, at := range []int{0, checkpointSize} {
		if len(b) < at+8 {
			continue
		}
		text := b[at+8:]
		text = text[:min(uint32(len(text)), binary.BigEndian.Uint32(b[at:]))]
		var m synced
		if crc32.Checksum(text, castagnoli) == binary.BigEndian.Uint32(b[at+4:]) && json.Unmarshal(text, &m) == nil && m.Turn > newest.Turn {
			newest = m
		}
	}
	if newest.Turn == 0 {
		err = &DamageError{File: path, What: "both checksums are wrong"}
	}
	return newest, err
}

// checkLogs reads the logs that the checkpoint names.
func checkLogs(dir string) error {
	m, err := readCheckpoint(dir)
	if err != nil {
		return err
	}
	for name, want := range m.Logs {
		path := filepath.Join(dir, name)
		got, err := readPrefix(path, want.Bytes)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return &DamageError{File: path, What: "the file is missing"}
		case err != nil:
			return fmt.Errorf("store: %w", err)
		case got.Bytes < want.Bytes:
			return &DamageError{File: path, What: fmt.Sprintf("of %d bytes that were on the disk %d are there", want.Bytes, got.Bytes)}
		case got != want:
			return &DamageError{File: path, What: "its checksum is wrong"}
		}
	}
	return nil
}

// readPrefix reads so many bytes of a file, or all it has.
func readPrefix(path string, most int64) (p prefix, err error) {
	f, err := os.Open(path)
	if err != nil {
		return p, err
	}
	defer f.Close()
	buf := make([]byte, 256<<10)
	for r := io.LimitReader(f, most); ; {
		n, err := r.Read(buf)
		p.append(buf[:n])
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return p, err
		}
	}
}
