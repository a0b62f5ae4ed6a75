package boot

import (
	"context"
	"io"
	"os"
)

// Open opens a file to read that may be a pipe. Waiting for a writer, and for
// what it writes, ends with Stop.
func (e *Env) Open(path string) (io.ReadCloser, error) {
	file, r, err := openInput(e.Stop, path)
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{r, file}, nil
}

// openInput opens a file and returns how to read it.
func openInput(ctx context.Context, path string) (*os.File, io.Reader, error) {
	type opened struct {
		file *os.File
		err  error
	}
	ready := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		ready <- opened{file, err}
	}()
	var o opened
	select {
	case o = <-ready:
	case <-ctx.Done():
		go func() { // until a writer comes, or the program ends
			if o := <-ready; o.err == nil {
				_ = o.file.Close()
			}
		}()
		return nil, nil, context.Cause(ctx)
	}
	if o.err != nil {
		return nil, nil, o.err
	}
	if st, err := o.file.Stat(); err == nil && st.Mode().IsRegular() {
		return o.file, o.file, nil
	}
	return o.file, &input{ctx: ctx, r: o.file}, nil
}

// input reads what may keep a reader waiting: pipes, terminals, devices. A read
// that its context ends is left to itself.
type input struct {
	ctx context.Context
	r   io.Reader
	buf []byte
}

func (in *input) Read(p []byte) (int, error) {
	if in.ctx.Err() != nil {
		return 0, context.Cause(in.ctx)
	}
	if len(in.buf) < len(p) {
		in.buf = make([]byte, len(p))
	}
	type result struct {
		n   int
		err error
	}
	buf, ready := in.buf[:len(p)], make(chan result, 1) // not p: the read may outlast the call
	go func() {
		n, err := in.r.Read(buf)
		ready <- result{n, err}
	}()
	select {
	case got := <-ready:
		return copy(p, buf[:got.n]), got.err
	case <-in.ctx.Done():
		in.buf = nil
		return 0, context.Cause(in.ctx)
	}
}
