// Package warc archives what was fetched as WARC 1.1 (ISO 28500:2017).
//
// A page becomes a response, or a revisit when the same payload was archived
// before, with the request that brought it and a metadata record; a URL that got
// no answer leaves the metadata alone. Request and response stand there as they
// were on the wire: header lines, transfer coding and content coding. Only the
// values of headers that are credentials are left out (Config.Fields), and what
// was not read to its end is labelled so (WARC-Truncated). Block digests are of the
// block as it stands; payload digests, and so revisits, are of the payload
// without its transfer coding and with its content coding, as the standard has it.
//
// Workers build their records and compress them, each record as a gzip member or
// zstd frame of its own. A page's records join a sink.Queue as one entry, whose
// committer writes them to the open file, so that those of one page always stand
// together. A file is DIR/PREFIX-20261128T010203-RANDOM.warc.gz; it has .open
// behind its name, and is locked (flock), while it grows, and never changes once
// it has not. It begins with a warcinfo record. Open finishes what a killed
// process left: it cuts torn ends off. Nothing is synced: a machine that loses
// power may lose what its kernel had not yet written out.
package warc

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"seine/extract/sink"
	"seine/extract/sink/frame"
)

// Config of a Sink. Dir and Prefix are required; the zero value of another
// field is the default it names.
type Config struct {
	Dir    string // made, 0700, if it is not there; processes may share it
	Prefix string // what names of files begin with
	// Kind of the files: frame.Gzip or frame.Zstd. Default frame.Gzip.
	Kind frame.Kind
	// Fields are the optional fields of the record inside metadata; with
	// sink.KeepSecrets credentials are archived too. Default none.
	Fields sink.Fields
	// RotateSize is the size in bytes that a file does not outgrow (unless one
	// page does). Default 1 GB.
	RotateSize int64
	// RotateTime is how long after its first page a file is finished. Default: no
	// rotation by time.
	RotateTime time.Duration
	// Software is named in warcinfo. Default seine.
	Software string
	// MaxPending is how many compressed bytes may wait before Write blocks.
	// Default 64 MB.
	MaxPending int64
	// MaxRevisits is how many payloads are remembered, about 300 bytes each, so
	// that they are archived once. Default 100,000; negative: none.
	MaxRevisits int
	// Drop makes the sink drop records that find no room. There are no
	// revisits then: the payload they refer to might be lost.
	Drop bool
	// Finished, if not nil, is called with the path of each file that is finished.
	// It must not block.
	Finished func(path string)
}

// Parse reads what follows "warc:" in an address: DIR/PREFIX, with .gz or .zst
// behind it for the kind of files.
func Parse(text string) (Config, error) {
	c := Config{Kind: frame.Gzip}
	switch k := frame.KindOf(text); k {
	case frame.Gzip, frame.Zstd:
		c.Kind = k
		text = text[:strings.LastIndexByte(text, '.')]
	}
	c.Dir, c.Prefix = filepath.Split(strings.TrimSuffix(text, ".warc"))
	if c.Dir == "" {
		c.Dir = "."
	}
	return c, c.Validate()
}

// Series is the files that c means.
func (c *Config) Series() frame.Series {
	ext := ".warc.gz"
	if c.Kind == frame.Zstd {
		ext = ".warc.zst"
	}
	return frame.Series{Dir: c.Dir, Stem: c.Prefix, Ext: ext}
}

// Validate names all that is wrong with c.
func (c *Config) Validate() error {
	var errs []error
	if c.Dir == "" || c.Prefix == "" || strings.ContainsRune(c.Prefix, filepath.Separator) {
		errs = append(errs, fmt.Errorf("warc: files need a directory and a prefix, as in warc:DIR/PREFIX, not %q and %q", c.Dir, c.Prefix))
	}
	if c.RotateSize < 0 || c.RotateTime < 0 || c.MaxPending < 0 {
		errs = append(errs, errors.New("warc: RotateSize, RotateTime and MaxPending cannot be negative"))
	}
	if c.Kind > frame.Zstd {
		errs = append(errs, fmt.Errorf("warc: there is no kind %d", c.Kind))
	}
	return errors.Join(errs...)
}

func (c Config) withDefaults() Config {
	if c.Kind == frame.Plain {
		c.Kind = frame.Gzip
	}
	if c.RotateSize == 0 {
		c.RotateSize = 1 << 30
	}
	if c.Software == "" {
		c.Software = "seine"
	}
	if c.MaxRevisits == 0 {
		c.MaxRevisits = 100_000
	}
	if c.Drop || c.MaxRevisits < 0 {
		c.MaxRevisits = 0
	}
	return c
}

// Sink archives records. It is safe for concurrent use.
type Sink struct {
	cfg      Config
	queue    *sink.Queue
	writers  chan *writer // as many as can work at once
	payloads *payloads
	out      *frame.Writer // the committer's, until the queue is closed
}

var _ sink.Sink = (*Sink)(nil)

// Stats counts what a sink did beside its queue. Totals only grow.
type Stats struct {
	Files int64 // finished
	Cut   int64 // bytes of torn ends that Open cut off
}

// Open finishes files that a killed process left, makes sure that others can be
// made, and starts the sink.
func Open(cfg Config) (*Sink, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Sink{cfg: cfg.withDefaults()}
	s.payloads = newPayloads(s.cfg.MaxRevisits)
	s.writers = make(chan *writer, runtime.GOMAXPROCS(0))
	for range cap(s.writers) {
		s.writers <- &writer{cfg: &s.cfg, codec: frame.NewCodec(s.cfg.Kind), payloads: s.payloads}
	}
	var err error
	s.out, err = frame.OpenWriter(frame.WriterConfig{
		Kind: s.cfg.Kind, Series: s.cfg.Series(), Head: (&writer{cfg: &s.cfg, codec: frame.NewCodec(s.cfg.Kind)}).info,
		RotateSize: s.cfg.RotateSize, RotateTime: s.cfg.RotateTime, Finished: s.cfg.Finished,
	})
	if err != nil {
		return nil, fmt.Errorf("warc: %w", err)
	}
	s.queue = sink.NewQueue(sink.QueueConfig{Name: "warc", Commit: s.commit, End: s.out.Close, Idle: s.out.Idle, MaxPending: cfg.MaxPending, Drop: cfg.Drop})
	return s, nil
}

// Write implements sink.Sink. It compresses in the caller's goroutine, which
// waits while as many do as there are processors.
func (s *Sink) Write(r *sink.Record, done func(error)) {
	w := <-s.writers
	seen := w.page(r)
	s.queue.AddEntry(nil, w.out, done)
	if seen != nil { // from here on it is in the file before all that may refer to it
		s.payloads.remember(w.digest, *seen)
	}
	w.release()
	s.writers <- w
}

// commit writes a batch to the open file.
func (s *Sink) commit(_ context.Context, b *sink.Batch) error { return s.out.Write(b.Bytes()) }

// Err is why nothing can be written just now, or nil. Records wait meanwhile.
func (s *Sink) Err() error { return s.queue.Err() }

// QueueStats returns the counts of the queue.
func (s *Sink) QueueStats() sink.QueueStats { return s.queue.Stats() }

// Stats returns the other counts.
func (s *Sink) Stats() Stats { return Stats{Files: s.out.Files(), Cut: s.out.Cut()} }

// Close writes what waits, trying once, and finishes the file. The first error
// that cost records is returned.
func (s *Sink) Close() error { return s.queue.Close() }
