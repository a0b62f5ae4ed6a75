package boot

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"seine/extract/sink/frame"
)

// maxLine is how long a line of a file of URLs may be, bytes.
const maxLine = 256 << 10

// Why a line cannot be taken; the lines after it can. What a browser would make
// of such a line is another URL than the one that somebody meant.
var (
	ErrLine  = errors.New("line is longer than 256 KB, which no URL and no element is")
	errSpace = errors.New("there is a space inside: give each URL a line of its own, with %20 for a space in it; a comment begins with #")
	errNUL   = errors.New("there is a NUL inside, as in UTF-16 and UTF-32; convert the file, as iconv -t UTF-8 does")
	errUTF8  = errors.New("this is no UTF-8; convert the file, as iconv -t UTF-8 does, or escape the URL as a browser would")
)

// ErrTorn is where a file stops that is being written, or whose writer was
// killed, by its name.
var ErrTorn = errors.New("the file ends in the middle of what its writer wrote; what stands before was taken")

// Each calls f with every seed: the texts of --seed and, as elements, --sitemap, then the lines of each
// --file, without spaces around them, empty lines and comments. A line
// ends with LF, CR or both; a file is UTF-8, or UTF-16 with a byte order mark. where names the
// place, such as "urls.txt:7", and err is why a line cannot
// be taken; it is ErrTorn at the end of an unfinished file. An error that f
// returns ends it; a file that cannot be read is an error at the end, after the
// other files. in is what - stands for. A pipe that nobody writes to is waited
// for until ctx ends, whose cause is the error then.
func (s *SeedFlags) Each(ctx context.Context, in io.Reader, f func(where, text string, err error) error) error {
	for i, text := range s.Seed {
		if err := f(fmt.Sprintf("--seed %d", i+1), strings.TrimSpace(text), nil); err != nil {
			return err
		}
	}
	for i, text := range s.Sitemap {
		element, err := json.Marshal(map[string]any{"url": strings.TrimSpace(text), "sitemap": true})
		if err != nil {
			return fmt.Errorf("--sitemap %d: %w", i+1, err)
		}
		if err := f(fmt.Sprintf("--sitemap %d", i+1), string(element), nil); err != nil {
			return err
		}
	}
	var unread []error
	for _, path := range s.File {
		err := eachLine(ctx, path, in, f)
		var file *fileError
		if errors.As(err, &file) {
			unread = append(unread, err)
		} else if err != nil {
			return errors.Join(append(unread, err)...)
		}
	}
	return errors.Join(unread...)
}

// fileError is what keeps one file, or the rest of it, from being read.
type fileError struct {
	text string
	err  error
}

func (e *fileError) Error() string { return "file: " + e.text + e.err.Error() }
func (e *fileError) Unwrap() error { return e.err }

func eachLine(ctx context.Context, path string, in io.Reader, f func(where, text string, err error) error) error {
	name := "stdin"
	var file *os.File
	if path != "-" {
		var err error
		if file, in, err = openInput(ctx, path); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return &fileError{"", err}
		}
		defer file.Close()
		name = path
	}
	packed := bufio.NewReaderSize(in, maxLine)
	if head, err := packed.Peek(len(zstdMagic)); err == io.EOF && strings.HasSuffix(name, frame.OpenEnd) && bytes.HasPrefix(zstdMagic, head) {
		return nil // not even its first frame begins
	}
	plain, done, err := inflate(packed)
	if ctx.Err() != nil && err != nil {
		return fmt.Errorf("%s: %w", name, context.Cause(ctx))
	}
	if err != nil {
		return &fileError{name + ": ", err}
	}
	defer done()
	lines := bufio.NewReaderSize(&newlines{in: decode(plain)}, maxLine)
	for number := 1; ; number++ {
		line, tooLong, err := readLine(lines)
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		where := fmt.Sprintf("%s:%d", name, number)
		if err != nil && err != io.EOF && ctx.Err() != nil {
			return fmt.Errorf("%s: %w", where, context.Cause(ctx))
		}
		if err != nil && err != io.EOF { // the line may be cut too
			if torn(file, err) {
				return f(where, "", ErrTorn)
			}
			return &fileError{fmt.Sprintf("%s cannot be read beyond line %d, what stands before it was taken: ", name, number-1), err}
		}
		if text := bytes.TrimSpace(line); tooLong {
			if err := f(where, "", ErrLine); err != nil {
				return err
			}
		} else if len(text) > 0 && text[0] != '#' {
			entry, fault := entryOf(text)
			if err := f(where, entry, fault); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
	}
}

// torn reports whether a file that its name calls unfinished just ends early.
// What stands in its last, incomplete frame belongs to pages that were not
// settled, so it comes up again. A broken frame that others follow was synced
// before they were written: that is damage. Cost: reading the file once more.
func torn(file *os.File, err error) bool {
	var disk *fs.PathError
	if file == nil || !strings.HasSuffix(file.Name(), frame.OpenEnd) || errors.As(err, &disk) {
		return false
	}
	end, err := lastFrame(io.NewSectionReader(file, 0, math.MaxInt64))
	if err != nil {
		return false
	}
	plain, done, err := inflate(bufio.NewReader(io.NewSectionReader(file, 0, end)))
	if err != nil {
		return false
	}
	defer done()
	_, err = io.Copy(io.Discard, plain)
	return err == nil
}

// lastFrame is where the last zstd frame of r begins, whole or not; 0 when there
// is none.
func lastFrame(r io.Reader) (at int64, err error) {
	buf := make([]byte, maxLine)
	from, kept := int64(0), 0
	for {
		n, err := io.ReadFull(r, buf[kept:])
		window := buf[:kept+n]
		if i := bytes.LastIndex(window, zstdMagic); i >= 0 {
			at = from + int64(i)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return at, nil
		}
		if err != nil {
			return 0, err
		}
		kept = len(zstdMagic) - 1 // one may be cut in two
		from += int64(len(window) - kept)
		copy(buf, window[len(window)-kept:])
	}
}

// entryOf takes the comment off a line with a URL. An element of the feed, which
// is JSON, has none.
func entryOf(line []byte) (string, error) {
	switch end := bytes.IndexAny(line, " \t"); {
	case bytes.IndexByte(line, 0) >= 0:
		return "", errNUL
	case !utf8.Valid(line):
		return "", errUTF8
	case line[0] == '{':
		return string(line), nil
	case bytes.Contains(line, []byte("\ufffd")): // what decoders write for it
		return "", errUTF8
	case end < 0:
		return string(line), nil
	case bytes.TrimSpace(line[end:])[0] == '#':
		return string(line[:end]), nil
	}
	return "", errSpace
}

// decode turns UTF-16 with a byte order mark into UTF-8.
func decode(in io.Reader) io.Reader {
	r := bufio.NewReader(in)
	mark, _ := r.Peek(2) // an error comes up again when the line is read
	if string(mark) == "\xff\xfe" || string(mark) == "\xfe\xff" {
		return transform.NewReader(r, unicode.UTF16(unicode.BigEndian, unicode.ExpectBOM).NewDecoder())
	}
	return r
}

// newlines makes every end of a line an LF: CR LF, and CR alone.
type newlines struct {
	in io.Reader
	cr bool // the last byte was one
}

func (l *newlines) Read(p []byte) (int, error) {
	for {
		n, err := l.in.Read(p)
		kept := p[:0]
		for _, c := range p[:n] {
			if c == '\n' && l.cr {
				l.cr = false
				continue
			}
			if l.cr = c == '\r'; l.cr {
				c = '\n'
			}
			kept = append(kept, c)
		}
		if len(kept) > 0 || err != nil || len(p) == 0 {
			return len(kept), err
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

// zstdMagic is what a zstd frame begins with.
var zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

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
	case bytes.Equal(head, zstdMagic):
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, nil, err
		}
		return z, z.Close, nil
	}
	return r, func() {}, nil
}
