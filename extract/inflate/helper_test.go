package inflate

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// verdict is what becomes of a stream.
type verdict string

const (
	good  verdict = "good"
	short verdict = "short" // it needs more input
	bad   verdict = "bad"
)

func judge(err error) verdict {
	switch err {
	case nil:
		return good
	case io.ErrUnexpectedEOF:
		return short
	}
	return bad
}

// standard decodes with the standard library, one member after the other. Reserved
// flags of a gzip header are a fault too.
func standard(f Format, src []byte) ([]byte, verdict) {
	in := bufio.NewReader(bytes.NewReader(src))
	head, _ := in.Peek(2)
	var r io.Reader
	var err error
	switch {
	case f == Gzip:
		return standardMembers(in)
	case f == Deflate && len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0:
		if r, err = zlib.NewReader(in); err != nil {
			return nil, judge(err)
		}
	default:
		r = flate.NewReader(in)
	}
	out, err := io.ReadAll(r)
	return out, judge(err)
}

func standardMembers(in *bufio.Reader) (out []byte, v verdict) {
	var z gzip.Reader
	for more := true; more; {
		head, _ := in.Peek(4)
		if len(head) == 4 && head[3]&reserved != 0 {
			return out, bad
		}
		if err := z.Reset(in); err != nil {
			if err == io.EOF { // no byte at all
				err = io.ErrUnexpectedEOF
			}
			return out, judge(err)
		}
		z.Multistream(false)
		b, err := io.ReadAll(&z)
		if out = append(out, b...); err != nil {
			return out, judge(err)
		}
		head, _ = in.Peek(2)
		more = bytes.Equal(head, []byte{0x1f, 0x8b})
	}
	return out, good
}

// whole decodes in one call.
func whole(d *Decoder, f Format, src, dst []byte) ([]byte, verdict, error) {
	d.Reset(f)
	out, _, err := d.Decode(dst[:0], src)
	if err == ErrRoom {
		return out, "", err
	}
	err = d.End()
	return out, judge(err), err
}

// compare holds d to the standard library. In a stream that is short the two may
// stop some symbols apart, as the library wants more bits there than the next
// symbol has. Zeros behind the stream then show what those symbols are.
func compare(tb testing.TB, d *Decoder, f Format, src, dst []byte) {
	tb.Helper()
	want, wants := standard(f, src)
	got, gots, err := whole(d, f, src, dst)
	if err == ErrRoom { // more than the test has room for, and so the library
		if len(want) < len(got) || !bytes.Equal(got, want[:len(got)]) {
			tb.Fatalf("%x: %d bytes in all the room, standard library: %d", src, len(got), len(want))
		}
		return
	}
	if gots == wants && bytes.Equal(got, want) {
		return
	}
	if wants == short && bytes.HasPrefix(got, want) {
		more, verdict := standard(f, append(bytes.Clone(src), make([]byte, 64)...))
		if bytes.HasPrefix(more, got) && (gots == short || gots == bad && verdict == bad) {
			return
		}
	}
	if f == Deflate && len(src) == 1 && gots == short && wants == bad { // one byte does not tell zlib from blocks
		return
	}
	tb.Fatalf("%x: %s (%v) after %d bytes, standard library: %s after %d", src, gots, err, len(got), wants, len(want))
}

// sample is a stream and what it is.
type sample struct {
	name   string
	format Format
	packed []byte
}

// plainText is text of some variety, repeated at short and long distances.
func plainText(tb testing.TB) []byte {
	b, err := os.ReadFile("testdata/text")
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// samples are streams of many encoders: those that run here, and files that others
// made of the same text.
func samples(tb testing.TB) []sample {
	text := plainText(tb)
	var all []sample
	add := func(name string, f Format, make func(w io.Writer) (io.WriteCloser, error), write func(w io.WriteCloser)) {
		var b bytes.Buffer
		w, err := make(&b)
		if err != nil {
			tb.Fatal(name, err)
		}
		write(w)
		if err := w.Close(); err != nil {
			tb.Fatal(name, err)
		}
		all = append(all, sample{name, f, b.Bytes()})
	}
	once := func(w io.WriteCloser) { w.Write(text) }
	for level := flate.HuffmanOnly; level <= flate.BestCompression; level++ {
		name := " of level " + strconv.Itoa(level)
		add("gzip"+name, Gzip, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, level) }, once)
		add("zlib"+name, Deflate, func(w io.Writer) (io.WriteCloser, error) { return zlib.NewWriterLevel(w, level) }, once)
		add("raw"+name, Raw, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, level) }, once)
	}
	add("flushed every few KB", Gzip, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, func(w io.WriteCloser) {
		for rest := text; len(rest) > 0; {
			n := min(3000, len(rest))
			w.Write(rest[:n])
			w.(*gzip.Writer).Flush()
			rest = rest[n:]
		}
	})
	add("all header fields", Gzip, func(w io.Writer) (io.WriteCloser, error) {
		z := gzip.NewWriter(w)
		z.Name, z.Comment, z.Extra = "a name", strings.Repeat("x", 511), make([]byte, 300)
		return z, nil
	}, once)
	add("fixed", Raw, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, 9) }, func(w io.WriteCloser) { w.Write([]byte("abcabcabcabd")) })
	add("empty", Gzip, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriter(w), nil }, func(io.WriteCloser) {})
	files, err := filepath.Glob("testdata/*.gz")
	if err != nil || len(files) == 0 {
		tb.Fatal("no files of other encoders", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, sample{filepath.Base(name), Gzip, b})
	}
	var members []byte
	for _, s := range all {
		if s.format == Gzip && len(members) < 20_000 {
			members = append(members, s.packed...)
		}
	}
	return append(all, sample{"members", Gzip, members}, sample{"behind a member", Gzip, append(bytes.Clone(members), "\x1f and more"...)})
}

var errSplit = errors.New("does not go on")

// pieces decodes src given in pieces, each call with limited room, at most
// maxPieceRoom, in memory that keeps no more than it has to.
func pieces(d *Decoder, f Format, src []byte, piece, room func() int) (all []byte, _ verdict, _ error) {
	d.Reset(f)
	mem := make([]byte, Window+maxPieceRoom)
	have := 0 // of mem
	for ended := false; !ended && len(src) > 0; {
		next := src[:min(piece(), len(src))]
		for {
			room := room()
			if room > len(mem)-have {
				have = copy(mem, mem[max(0, have-Window):have])
			}
			out, n, err := d.Decode(mem[:have:have+room], next)
			all = append(all, out[have:]...)
			have = len(out)
			next, src = next[n:], src[n:]
			if err == nil && len(next) > 0 {
				return all, "", errSplit
			}
			if err != ErrRoom {
				ended = err != nil
				break
			}
		}
	}
	err := d.End()
	return all, judge(err), err
}

const maxPieceRoom = 64 << 10

// pack compresses with the standard library.
func pack(tb testing.TB, f Format, level int, p []byte) []byte {
	tb.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch f {
	case Gzip:
		w, err = gzip.NewWriterLevel(&b, level)
	case Deflate:
		w, err = zlib.NewWriterLevel(&b, level)
	case Raw:
		w, err = flate.NewWriter(&b, level)
	}
	if err == nil {
		_, err = w.Write(p)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}
