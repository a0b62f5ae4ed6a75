package web

import (
	"fmt"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
)

// charset is one encoding with a text that it can write.
type charset struct {
	name  string
	text  string // UTF-8
	coded []byte // text in the encoding
	wide  encoding.Encoding
}

// loadCharsets makes the table of encodings: UTF-8, the usual families, and
// UTF-16, which is no superset of ASCII, so that whole pages are turned into it.
func loadCharsets() ([]charset, error) {
	sets := []charset{
		{name: "utf-8", text: "Grüße, привет, 日本語, שלום"},
		{name: "windows-1252", text: "Grüße aus Köln – “fünf”"},
		{name: "iso-8859-1", text: "garçon déjà vu à l'été"},
		{name: "iso-8859-2", text: "Zażółć gęślą jaźń"},
		{name: "iso-8859-7", text: "Καλημέρα κόσμε"},
		{name: "windows-1251", text: "Привет, мир"},
		{name: "koi8-r", text: "Съешь ещё этих булок"},
		{name: "windows-1255", text: "שלום עולם"},
		{name: "windows-1256", text: "مرحبا بالعالم"},
		{name: "shift_jis", text: "日本語のページ、表示能力"},
		{name: "euc-jp", text: "日本語のページです"},
		{name: "gbk", text: "中文网页的例子"},
		{name: "gb18030", text: "中文网页的例子二"},
		{name: "big5", text: "繁體中文網頁"},
		{name: "euc-kr", text: "한국어 페이지"},
		{name: "utf-16le", text: "Grüße, привет, 日本語"},
		{name: "utf-16be", text: "Grüße, привет, 한국어"},
	}
	for i := range sets {
		c := &sets[i]
		c.coded = []byte(c.text)
		switch c.name {
		case "utf-8":
			continue
		case "utf-16le":
			c.wide = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
			continue
		case "utf-16be":
			c.wide = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
			continue
		}
		enc, err := htmlindex.Get(c.name)
		if err == nil {
			c.coded, err = enc.NewEncoder().Bytes(c.coded)
		}
		if err != nil {
			return nil, fmt.Errorf("web: charset %s: %w", c.name, err)
		}
	}
	return sets, nil
}
