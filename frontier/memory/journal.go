package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"sync"
)

// A file of a crawl is a row of frames: a magic number, the length of the
// payload, a checksum, and how many bytes of the file were known to be on the
// disk when the frame was written. What is broken before that mark is damage;
// what is broken behind it may be the end of a write that a power cut tore. The
// checksum knows the file and the place in it: a frame is none elsewhere.
const (
	frameMagic  = 0x316a5353 // "SSj1": the format's version is its last byte
	frameHeader = 20
	frameMost   = 1 << 28 // bytes of a payload
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealFrame makes a frame of h, whose first frameHeader bytes are free and whose
// rest is the payload. It is for the file that salt stands for, from off on.
func sealFrame(h []byte, salt uint32, off, synced int64) {
	binary.LittleEndian.PutUint32(h, frameMagic)
	binary.LittleEndian.PutUint32(h[4:], uint32(len(h)-frameHeader))
	binary.LittleEndian.PutUint64(h[12:], uint64(synced))
	binary.LittleEndian.PutUint32(h[8:], checksum(h, salt, off))
}

// checksum is that of a frame, over its mark and payload.
func checksum(frame []byte, salt uint32, off int64) uint32 {
	var place [8]byte
	binary.LittleEndian.PutUint64(place[:], uint64(off))
	return crc32.Update(crc32.Update(salt, castagnoli, place[:]), castagnoli, frame[12:])
}

// saltOf is the salt of a file with that first payload, for all other frames.
func saltOf(header []byte) uint32 { return crc32.Checksum(header, castagnoli) }

// frameLength is the length of the payload that a header names, or -1 when it is
// no header.
func frameLength(h []byte) int64 {
	if binary.LittleEndian.Uint32(h) != frameMagic {
		return -1
	}
	if n := int64(binary.LittleEndian.Uint32(h[4:])); n <= frameMost {
		return n
	}
	return -1
}

// frameAt returns payload, mark and whole length of the frame that b starts
// with; ok is false when there is none.
func frameAt(b []byte, salt uint32, off int64) (payload []byte, synced int64, size int, ok bool) {
	if len(b) < frameHeader {
		return nil, 0, 0, false
	}
	n := frameLength(b)
	if n < 0 || n > int64(len(b)-frameHeader) {
		return nil, 0, 0, false
	}
	size = frameHeader + int(n)
	if checksum(b[:size], salt, off) != binary.LittleEndian.Uint32(b[8:]) {
		return nil, 0, 0, false
	}
	return b[frameHeader:size], int64(binary.LittleEndian.Uint64(b[12:])), size, true
}

// journal is the file that one shard writes its changes to. Callers add records
// under the lock of the shard and commit them after it: whoever comes first
// writes for all that wait.
type journal struct {
	always bool // sync each commit

	mu      sync.Mutex
	done    sync.Cond
	file    *os.File
	gen     uint64
	salt    uint32
	buf     []byte // a frame in the making: room for its header, then records
	spare   []byte
	added   uint64 // records added
	written uint64 // of them in the file
	writing bool
	size    int64 // bytes written to the file
	synced  int64 // bytes of the file known to be on the disk
	lost    error // set for good by a sync that failed
	closed  bool
}

func newJournal(file *os.File, gen uint64, salt uint32, size int64, always bool) *journal {
	j := &journal{file: file, gen: gen, salt: salt, size: size, synced: size, always: always, buf: make([]byte, frameHeader)}
	j.done.L = &j.mu
	return j
}

// add takes over a record. The lock of the shard is held.
func (j *journal) add(rec []byte) {
	j.mu.Lock()
	j.buf = append(j.buf, rec...)
	j.added++
	j.mu.Unlock()
}

// last names the newest record.
func (j *journal) last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.added
}

// length is the size of the file.
func (j *journal) length() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.size
}

// commit returns when the record is in the file: a crash of the process no
// longer loses it. After an error the record stays and goes with the next
// commit, unless the journal is lost.
func (j *journal) commit(record uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.lost != nil {
		return j.lost
	}
	for j.written < record {
		if j.writing {
			j.done.Wait()
			continue
		}
		if err := j.write(); err != nil {
			return err
		}
	}
	return nil
}

// write writes what there is as one frame. j.mu is held, and given up while
// the disk works.
func (j *journal) write() error {
	if j.closed {
		return ErrClosed
	}
	if j.lost != nil {
		return j.lost
	}
	frame, upto := j.buf, j.added
	j.buf = append(j.spare[:0], make([]byte, frameHeader)...)
	j.writing = true
	j.spare = nil
	sealFrame(frame, j.salt, j.size, j.synced)
	file, size := j.file, j.size
	j.mu.Unlock()

	_, err := file.WriteAt(frame, size)
	var unsynced error
	if err != nil {
		file.Truncate(size) // what is left of it is a torn end
	} else if j.always {
		unsynced = file.Sync()
	}

	j.mu.Lock()
	j.writing = false
	j.done.Broadcast()
	if unsynced != nil {
		return j.lose(unsynced)
	}
	if err != nil {
		j.buf = append(frame, j.buf[frameHeader:]...)
		return fmt.Errorf("memory: journal: %w; make room: it is tried again while this program runs, and the next start goes on from what was written", err)
	}
	j.written, j.size = upto, size+int64(len(frame))
	if j.always {
		j.synced = j.size
	}
	if cap(frame) <= 1<<20 {
		j.spare = frame
	}
	return nil
}

// lose ends the use of the file, for a sync of it failed: nobody knows what of it
// is on the disk, and the next sync would say nothing, for the kernel forgets
// pages that it could not write. The records to come would stand behind a hole.
// replace ends this. j.mu is held.
func (j *journal) lose(err error) error {
	if j.lost == nil {
		j.lost = fmt.Errorf("memory: journal: %w; what was done lately may not be on the disk, so nothing more is done; mend the disk, then end this program in order: it writes all that it knows to new files", err)
	}
	return j.lost
}

// isLost reports whether a sync failed.
func (j *journal) isLost() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lost != nil
}

// sync brings what was written to the disk.
func (j *journal) sync() error {
	j.mu.Lock()
	file, size, lost, done := j.file, j.size, j.lost, j.synced == j.size
	j.mu.Unlock()
	if lost != nil || done {
		return lost
	}
	err := file.Sync()
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrClosed) && j.file != file: // rotate synced it
		return nil
	case err != nil: // of a file that was rotated meanwhile too: the kernel tells once
		return j.lose(err)
	case j.file == file:
		j.synced = max(j.synced, size)
	}
	return nil
}

// rotate ends the file and goes on in another. The lock of the shard is held,
// so no record comes in between.
func (j *journal) rotate(file *os.File, gen uint64, salt uint32, size int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.writing || j.written < j.added {
		if j.writing {
			j.done.Wait()
		} else if err := j.write(); err != nil {
			return err
		}
	}
	if j.lost != nil { // a sync would not say so again
		return j.lost
	}
	if err := j.file.Sync(); err != nil {
		return j.lose(err)
	}
	j.goOn(file, gen, salt, size)
	return nil
}

// replace goes on in another file, behind a snapshot that has all that was ever
// added. Nothing may be added since it was taken.
func (j *journal) replace(file *os.File, gen uint64, salt uint32, size int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.goOn(file, gen, salt, size)
	j.buf, j.written, j.lost = j.buf[:frameHeader], j.added, nil
}

func (j *journal) goOn(file *os.File, gen uint64, salt uint32, size int64) {
	j.file.Close()
	j.file, j.gen, j.salt, j.size, j.synced = file, gen, salt, size, size
}

// close writes and syncs all there is, and then a last record, which says that
// the disk had all before it.
func (j *journal) close(last []byte) error {
	err := j.commit(j.last())
	if err == nil {
		err = j.sync()
	}
	if err == nil {
		j.add(last)
		err = j.commit(j.last())
	}
	if err == nil {
		err = j.sync()
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
	if e := j.file.Close(); err == nil {
		err = e
	}
	return err
}
