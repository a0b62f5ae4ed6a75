package frame

import (
	"bytes"
	"testing"
)

func FuzzIntact(f *testing.F) {
	var g gzipCodec
	var z zstdCodec
	line := []byte(`{"v":1,"url":"https://example.com/3","status":200}` + "\n")
	f.Add(g.Append(nil, line), uint8(Gzip))
	f.Add(z.Append(nil, line), uint8(Zstd))
	f.Add(line, uint8(Plain))
	f.Fuzz(func(t *testing.T, data []byte, k uint8) {
		good, err := Intact(bytes.NewReader(data), int64(len(data)), Kind(k%3))
		if err == nil && (good < 0 || good > int64(len(data))) {
			t.Fatalf("%d of %d bytes", good, len(data))
		}
	})
}
