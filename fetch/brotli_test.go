package fetch

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/molecule-man/go-brrr"
)

// mutationsEnv is how many damaged bodies TestBrotliAgrees decodes.
const mutationsEnv = "SEINE_BROTLI_MUTATIONS"

// Two readers of brotli agree on whole, cut and damaged bodies. Of a broken one
// each hands out what it had of it when it met the fault.
func TestBrotliAgrees(t *testing.T) {
	mutations := 5_000
	if s := os.Getenv(mutationsEnv); s != "" {
		var err error
		if mutations, err = strconv.Atoi(s); err != nil {
			t.Fatal(mutationsEnv, err)
		}
	}
	var bodies [][]byte
	for _, plain := range [][]byte{nil, []byte("a"), page(300), page(5000), page(40_000), read(t, "decode.go"), read(t, "exchange.go")} {
		for level := range 12 {
			var one, other bytes.Buffer
			w := brotli.NewWriterLevel(&one, level)
			w.Write(plain)
			w.Close()
			v, err := brrr.NewWriter(&other, level)
			if err != nil {
				t.Fatal(err)
			}
			v.Write(plain)
			v.Close()
			bodies = append(bodies, one.Bytes(), other.Bytes())
		}
	}
	var d decoders
	check := func(body []byte) {
		t.Helper()
		want, wantErr := io.ReadAll(io.LimitReader(brotli.NewReader(bytes.NewReader(body)), 1<<20))
		s := d.getStage(codingBrotli, &given{body}, 1<<30)
		defer d.putStage(s)
		var got []byte
		var err error
		for err == nil && len(got) < 1<<20 {
			var b []byte
			b, err = s.piece()
			got = append(got, b...)
		}
		if err == io.EOF {
			err = nil
		}
		if len(body) == 0 && err == nil || len(want) == 1<<20 && bytes.HasPrefix(got, want) {
			return
		}
		if (err == nil) != (wantErr == nil) || err == nil && !bytes.Equal(got, want) || !bytes.HasPrefix(want, got) && !bytes.HasPrefix(got, want) {
			t.Fatalf("%.200x (%d bytes): %v after %d bytes, the other reader: %v after %d", body, len(body), err, len(got), wantErr, len(want))
		}
	}
	for _, body := range bodies {
		check(body)
		for n := 0; n < len(body); n += 1 + len(body)/20 {
			check(body[:n])
		}
		check(append(bytes.Clone(body), "more"...))
	}
	rng := rand.New(rand.NewPCG(7, uint64(mutations)))
	for range mutations {
		body := bytes.Clone(bodies[rng.IntN(len(bodies))])
		for range 1 + rng.IntN(3) {
			at := rng.IntN(len(body))
			if rng.IntN(2) == 0 {
				at = rng.IntN(min(len(body), 100))
			}
			switch rng.IntN(4) {
			case 0, 1:
				body[at] ^= 1 << rng.IntN(8)
			case 2:
				body[at] = byte(rng.Uint32())
			case 3:
				other := bodies[rng.IntN(len(bodies))]
				body = append(body[:at], other[min(at, len(other)):]...)
			}
			if len(body) == 0 {
				body = []byte{0}
			}
		}
		check(body)
	}
}
