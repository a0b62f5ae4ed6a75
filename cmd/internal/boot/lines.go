package boot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// maxLine is how long a line of a file of URLs may be, bytes.
const maxLine = 64 << 10

// ErrLine is a line that cannot be read; the lines after it can.
var ErrLine = errors.New("line is too long")

// Each calls f with every seed: the texts of --seed, then the lines of each
// --file, without blanks around them, blank lines and comments. where names the
// place, such as "urls.txt:7", and err is ErrLine instead of a text where a
// line is too long. An error that f returns ends it, as does a file that
// cannot be read. in is what - stands for.
func (s *SeedFlags) Each(in io.Reader, f func(where, text string, err error) error) error {
	for i, text := range s.Seed {
		if err := f(fmt.Sprintf("--seed %d", i+1), strings.TrimSpace(text), nil); err != nil {
			return err
		}
	}
	for _, path := range s.File {
		if err := eachLine(path, in, f); err != nil {
			return err
		}
	}
	return nil
}

func eachLine(path string, in io.Reader, f func(where, text string, err error) error) error {
	name := "stdin"
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("file: %w", err)
		}
		defer file.Close()
		in, name = file, path
	}
	plain, done, err := inflate(bufio.NewReaderSize(in, maxLine))
	if err != nil {
		return fmt.Errorf("file: %s: %w", name, err)
	}
	defer done()
	lines := bufio.NewReaderSize(plain, maxLine)
	for number := 1; ; number++ {
		line, tooLong, err := readLine(lines)
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		where := fmt.Sprintf("%s:%d", name, number)
		if err != nil && err != io.EOF { // the line may be cut too
			return fmt.Errorf("file: %s cannot be read beyond line %d, what stands before it was taken: %w", name, number-1, err)
		}
		if text := bytes.TrimSpace(line); tooLong {
			if err := f(where, "", ErrLine); err != nil {
				return err
			}
		} else if len(text) > 0 && text[0] != '#' {
			if err := f(where, string(text), nil); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// readLine returns a line, or skips one that is too long.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	line, err = r.ReadSlice('\n')
	for err == bufio.ErrBufferFull {
		tooLong = true
		_, err = r.ReadSlice('\n')
	}
	return line, tooLong, err
}

// inflate unpacks gzip and zstd, known by their first bytes; other content
// passes as it is.
func inflate(r *bufio.Reader) (plain io.Reader, done func(), err error) {
	head, err := r.Peek(4)
	if err != nil && err != io.EOF {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		g, err := gzip.NewReader(r)
		if err != nil {
			return nil, nil, err
		}
		return g, func() { g.Close() }, nil
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}
