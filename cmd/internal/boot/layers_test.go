package boot_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers has which packages of this module each may import. cmd may import
// all but bench, and bench may import all.
var layers = map[string][]string{
	"frontier/canon":             {},
	"fetch/robots":               {},
	"fetch/cookie":               {"frontier/canon"},
	"shard":                      {"frontier/canon"},
	"shard/shardtest":            {"shard"},
	"bloom":                      {"shard", "frontier/canon"},
	"frontier":                   {"frontier/headers", "frontier/canon"},
	"frontier/redis":             {"frontier", "bloom", "shard", "frontier/canon"},
	"frontier/audit":             {"frontier", "frontier/redis", "bloom", "shard", "frontier/canon"},
	"frontier/memory":            {"frontier", "frontier/memory/store", "frontier/canon"},
	"frontier/memory/store":      {},
	"frontier/frontiertest":      {"frontier", "frontier/canon"},
	"frontier/plan":              {"frontier", "bloom"},
	"frontier/ask":               {"frontier", "frontier/canon"},
	"fetch":                      {"frontier/headers", "fetch/egress", "fetch/resolver", "fetch/sign", "fetch/trust", "extract/mediatype", "frontier/canon", "extract/inflate"},
	"frontier/headers":           {},
	"fetch/egress":               {},
	"fetch/resolver":             {},
	"extract/inflate":            {},
	"fetch/sign":                 {},
	"fetch/sign/signtest":        {"fetch/sign"},
	"fetch/trust":                {},
	"fetch/wall":                 {},
	"extract/fields":             {"extract/charset", "frontier/canon"},
	"extract/simhash":            {},
	"extract/charset":            {},
	"extract/mediatype":          {},
	"extract/markdown":           {},
	"extract/preference":         {"extract/charset"},
	"extract":                    {"extract/charset", "extract/preference", "extract/simhash", "extract/markdown", "extract/mediatype", "frontier/canon", "extract/inflate"},
	"extract/sink":               {},
	"extract/sink/sinktest":      {"extract/sink"},
	"extract/sink/frame":         {},
	"extract/sink/hook":          {"extract/sink/frame"},
	"extract/sink/jsonl":         {"extract/sink", "extract/sink/frame"},
	"extract/sink/kafka":         {"extract/sink"},
	"extract/sink/postgres":      {"extract/sink"},
	"extract/sink/redis":         {"extract/sink", "shard"},
	"extract/sink/warc":          {"extract/sink", "extract/sink/frame"},
	"fetch/crawl":                {"fetch/crawl/internal/flow", "fetch/crawl/internal/site", "fetch/crawl/internal/watch", "fetch/crawl/internal/work", "frontier", "fetch", "fetch/robots", "fetch/wall", "extract", "extract/fields", "extract/preference", "extract/sink", "frontier/canon"},
	"fetch/crawl/internal/site":  {"fetch/crawl/internal/work", "extract/preference", "extract/sink", "fetch", "fetch/robots", "fetch/wall", "frontier"},
	"fetch/crawl/internal/flow":  {"fetch/crawl/internal/work", "frontier", "frontier/canon"},
	"fetch/crawl/internal/work":  {"frontier", "fetch", "fetch/cookie", "fetch/wall", "extract", "extract/fields", "extract/mediatype", "extract/preference", "extract/sink", "frontier/canon"},
	"fetch/crawl/internal/watch": {"fetch/crawl/internal/work", "fetch", "frontier"},
	"fetch/fetcher":              {"extract/sink", "fetch/crawl", "fetch", "fetch/robots", "frontier", "frontier/canon", "frontier/memory", "frontier/redis", "shard"},
}

// vendors has which packages may import a library that has one home.
var vendors = map[string][]string{
	"github.com/redis/go-redis/":          {"shard", "shard/shardtest"},
	"github.com/twmb/franz-go":            {"extract/sink/kafka"},
	"github.com/jackc/pgx/":               {"extract/sink/postgres"},
	"github.com/RedisBloom/":              {"bloom"},
	"github.com/gomodule/redigo/":         {"bloom"},
	"github.com/miekg/dns":                {"fetch/resolver"},
	"github.com/dunglas/httpsfv":          {"fetch/sign"},
	"github.com/valyala/fasthttp":         {"fetch", "bench/compare", "bench/web"},
	"github.com/tdewolff/parse/":          {"extract"},
	"github.com/gogs/chardet":             {"extract/charset"},
	"github.com/nlnwa/whatwg-url/":        {"frontier/canon"},
	"github.com/cockroachdb/":             {"frontier/memory/store"},
	"golang.org/x/net/publicsuffix":       {"frontier/canon"},
	"github.com/alecthomas/kong":          {"cmd/internal/boot", "cmd/internal/manual", "cmd/frontier", "cmd/fetcher", "bench/web/synthweb"},
	"golang.org/x/perf":                   {"frontier/plan"},
	"github.com/zeebo/xxh3":               {"fetch/crawl/internal/work"},
	"github.com/goccy/go-yaml":            {"cmd/internal/boot"},
	"github.com/KimMachineGun/automeml":   {"cmd/internal/boot"},
	"github.com/andybalholm/cascadia":     {"extract/fields"},
	"github.com/molecule-man/go-brrr":     {"fetch", "bench/load"},
	"codeberg.org/readeck/go-readability": {"extract/fields"},
	"github.com/itlightning/dateparse":    {"extract/fields"},
	"github.com/yuin/goldmark":            {"extract/markdown"},
}

// Imports run one way, and every library has one home.
func TestLayers(t *testing.T) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "seine/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(p.ImportPath, "seine/")
		allowed, inner := layers[name]
		outer := strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "bench/")
		if !inner && !outer {
			t.Errorf("%s has no place in the layers: say here what it may import", name)
		}
		for _, i := range p.Imports {
			if own, ok := strings.CutPrefix(i, "seine/"); ok && inner && !slices.Contains(allowed, own) {
				t.Errorf("%s imports %s", name, own)
			} else if ok && strings.HasPrefix(name, "cmd/") && strings.HasPrefix(own, "bench/") {
				t.Errorf("%s imports %s: the product needs nothing of the benchmarks", name, own)
			}
			for prefix, homes := range vendors {
				if strings.HasPrefix(i, prefix) && !slices.Contains(homes, name) {
					t.Errorf("%s imports %s, whose home is %s", name, i, strings.Join(homes, ", "))
				}
			}
		}
	}
}
