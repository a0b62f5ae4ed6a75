package bloom

import (
	"bytes"
	"errors"
	"testing"
)

// Any bytes are read to their end or refused, without a panic; what was not
// written as a dump is never taken for one.
func FuzzFrameReader(f *testing.F) {
	var sound bytes.Buffer
	w, err := newFrameWriter(&sound, Header{Plan: Plan{Filters: 1}, Each: 1, Filters: make([]Info, 1)})
	if err != nil {
		f.Fatal(err)
	}
	for iter, data := range []string{"first", "", "second"} {
		if err := w.write(frame{0, int64(iter), []byte(data)}); err != nil {
			f.Fatal(err)
		}
	}
	if err := w.end(); err != nil {
		f.Fatal(err)
	}
	f.Add(sound.Bytes())
	f.Add(sound.Bytes()[:sound.Len()/2])
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, dump []byte) {
		r, _, err := newFrameReader(bytes.NewReader(dump))
		for frames := 0; err == nil; frames++ {
			var c frame
			if c, err = r.next(); err == nil && c.key == noKey {
				if err = r.atEnd(); err == nil {
					return
				}
			}
			if frames > len(dump) {
				t.Fatal("more frames than bytes")
			}
		}
		if !errors.Is(err, ErrDamaged) && !bytes.HasPrefix(dump, []byte(magic[:len(magic)-1])) {
			t.Fatalf("neither read nor called damaged: %v", err)
		}
	})
}
