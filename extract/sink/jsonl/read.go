package jsonl

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"os"

	"seine/extract/sink"
	"seine/extract/sink/frame"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Records reads the records of files one after the other, whatever wrote them:
// JSON lines, plain, .gz or .zst. A record is the caller's. An error, also one of
// a torn end, is the last of the sequence.
func Records(paths ...string) iter.Seq2[*sink.Record, error] {
	return func(yield func(*sink.Record, error) bool) {
		for _, p := range paths {
			if more, err := readRecords(p, yield); err != nil || !more {
				if err != nil {
					yield(nil, fmt.Errorf("jsonl: reading %s: %w", p, err))
				}
				return
			}
		}
	}
}

func readRecords(path string, yield func(*sink.Record, error) bool) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	src := io.Reader(bufio.NewReaderSize(f, 1<<20))
	switch frame.KindOf(path) {
	case frame.Gzip:
		z, err := gzip.NewReader(src)
		if err == io.EOF { // nothing was written yet
			return true, nil
		}
		if err != nil {
			return false, err
		}
		src = z
	case frame.Zstd:
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return false, err
		}
		defer z.Close()
		src = z
	}
	for dec := json.NewDecoder(src); ; {
		var r sink.Record
		if err := dec.Decode(&r); err == io.EOF {
			return true, nil
		} else if err != nil {
			return false, err
		}
		if !yield(&r, nil) {
			return false, nil
		}
	}
}
