package sink

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Version is the format version of records, their field "v".
const Version = 1

// Fields is the set of optional fields a sink writes; the others of a Record
// are always written.
type Fields uint16

// The optional fields, named as in the JSON.
const (
	FieldBody     Fields = 1 << iota // body, body_encoding
	FieldLinksOut                    // links_out
	FieldHeaders                     // headers
	FieldText                        // text
	FieldSimHash                     // simhash
	FieldIP                          // ip
	FieldProtocol                    // protocol

	// KeepSecrets writes the values of headers that IsSecret names.
	KeepSecrets Fields = 1 << 15

	AllFields = FieldBody | FieldLinksOut | FieldHeaders | FieldText | FieldSimHash | FieldIP | FieldProtocol
)

var fieldNames = [...]struct {
	name string
	bit  Fields
}{{"body", FieldBody}, {"links_out", FieldLinksOut}, {"headers", FieldHeaders}, {"text", FieldText}, {"simhash", FieldSimHash}, {"ip", FieldIP}, {"protocol", FieldProtocol}}

// ParseFields turns names of optional fields into their set.
func ParseFields(names []string) (Fields, error) {
	var set Fields
next:
	for _, name := range names {
		for _, f := range fieldNames {
			if f.name == name {
				set |= f.bit
				continue next
			}
		}
		return 0, fmt.Errorf("sink: unknown field %q: body, links_out, headers, text, simhash, ip and protocol can be added", name)
	}
	return set, nil
}

// Has reports whether f holds every field of g.
func (f Fields) Has(g Fields) bool { return f&g == g }

// SetBody stores body: as it is when it is valid UTF-8, else in base64.
func (r *Record) SetBody(body []byte) {
	if utf8.Valid(body) {
		r.Body, r.BodyEncoding = string(body), ""
		return
	}
	r.Body, r.BodyEncoding = base64.StdEncoding.EncodeToString(body), "base64"
}

// IsSecret reports whether the values of a header are left out of outputs, unless
// KeepSecrets is given: who has them could act for the one who crawled.
func IsSecret(name string) bool {
	for _, s := range [...]string{"Authorization", "Proxy-Authorization", "Cookie", "Set-Cookie"} {
		if strings.EqualFold(s, name) {
			return true
		}
	}
	return false
}

// AppendJSON appends r as one line of JSON without the line feed. Names, order
// and omission are those of the struct tags, values those of encoding/json
// with these differences: the time is in UTC, C1 controls and DEL are escaped
// (a terminal never gets a raw control byte), <, > and & are not, a number
// that is none is 0, a Meta or Item that is not JSON becomes a string, half a
// pair of surrogates in one becomes U+FFFD, and secrets are empty. It allocates
// nothing beyond dst.
func (r *Record) AppendJSON(dst []byte, fields Fields) []byte {
	dst = append(dst, `{"v":`...)
	dst = strconv.AppendInt(dst, int64(r.V), 10)
	dst = appendText(dst, `,"url":`, r.URL)
	dst = optText(dst, `,"method":`, r.Method)
	dst = optText(dst, `,"request":`, r.Request)
	dst = appendNumber(dst, `,"status":`, int64(r.Status))
	dst = append(dst, `,"fetched_at":"`...)
	dst = r.FetchedAt.UTC().AppendFormat(dst, time.RFC3339Nano)
	dst = append(dst, '"')
	dst = appendNumber(dst, `,"depth":`, int64(r.Depth))
	dst = appendText(dst, `,"site":`, r.Site)
	dst = optText(dst, `,"content_type":`, r.ContentType)
	dst = optText(dst, `,"charset":`, r.Charset)
	dst = appendNumber(dst, `,"bytes":`, r.Bytes)
	dst = appendNumber(dst, `,"wire_bytes":`, r.WireBytes)
	dst = append(dst, `,"seconds":`...)
	dst = appendFloat(dst, r.Seconds)
	dst = optText(dst, `,"title":`, r.Title)
	dst = appendNumber(dst, `,"links":`, int64(r.Links))
	if r.Truncated {
		dst = append(dst, `,"truncated":true`...)
	}
	if r.NoIndex {
		dst = append(dst, `,"noindex":true`...)
	}
	if r.Error != nil {
		dst = appendText(dst, `,"error":{"class":`, r.Error.Class)
		dst = appendText(dst, `,"text":`, r.Error.Text)
		dst = append(dst, '}')
	}
	dst = appendNumber(dst, `,"attempts":`, int64(r.Attempts))
	if r.Redirects != 0 {
		dst = appendNumber(dst, `,"redirects":`, int64(r.Redirects))
	}
	dst = optText(dst, `,"location":`, r.Location)
	if r.Seen {
		dst = append(dst, `,"location_seen":true`...)
	}
	dst = optText(dst, `,"location_refused":`, r.Refused)
	dst = optText(dst, `,"from":`, r.From)
	dst = optText(dst, `,"referrer":`, r.Referrer)
	if len(r.Meta) > 0 {
		dst = append(dst, `,"meta":`...)
		dst = appendRaw(dst, r.Meta)
	}
	dst = optText(dst, `,"digest":`, r.Digest)
	if r.Unchanged {
		dst = append(dst, `,"unchanged":true`...)
	}
	if r.Duplicate {
		dst = append(dst, `,"duplicate":true`...)
	}
	if r.Wall != nil {
		dst = appendText(dst, `,"wall":{"vendor":`, r.Wall.Vendor)
		dst = strconv.AppendBool(append(dst, `,"sure":`...), r.Wall.Sure)
		dst = append(dst, '}')
	}
	dst = optText(dst, `,"wall_hint":`, r.WallHint)
	if len(r.Price) > 0 {
		dst = appendPairs(append(dst, `,"price":`...), r.Price, false)
	}
	dst = optText(dst, `,"etag":`, r.ETag)
	dst = optText(dst, `,"last_modified":`, r.Modified)
	if len(r.Preferences) > 0 {
		dst = append(dst, `,"preferences":`...)
		dst = appendRaw(dst, r.Preferences)
	}
	dst = optText(dst, `,"withheld":`, r.Withheld)
	if len(r.Items) > 0 {
		dst = append(dst, `,"items":`...)
		sep := byte('[')
		for _, it := range r.Items {
			dst = appendText(append(dst, sep), `{"key":`, it.Key)
			dst = append(dst, `,"value":`...)
			dst = append(appendRaw(dst, it.Value), '}')
			sep = ','
		}
		dst = append(dst, ']')
	}
	if len(r.Fields) > 0 {
		dst = append(dst, `,"fields":`...)
		dst = appendRaw(dst, r.Fields)
	}
	return append(r.appendOptional(dst, fields), '}')
}

// appendOptional appends the fields that --fields adds.
func (r *Record) appendOptional(dst []byte, fields Fields) []byte {
	if fields.Has(FieldBody) {
		dst = optText(dst, `,"body":`, r.Body)
		dst = optText(dst, `,"body_encoding":`, r.BodyEncoding)
	}
	if fields.Has(FieldLinksOut) && len(r.LinksOut) > 0 {
		dst = append(dst, `,"links_out":`...)
		sep := `[`
		for _, l := range r.LinksOut {
			dst = appendText(dst, sep, l)
			sep = `,`
		}
		dst = append(dst, ']')
	}
	if fields.Has(FieldHeaders) && len(r.Headers) > 0 {
		dst = appendPairs(append(dst, `,"headers":`...), r.Headers, !fields.Has(KeepSecrets))
	}
	if fields.Has(FieldText) {
		dst = optText(dst, `,"text":`, r.Text)
	}
	if r.TextTruncated {
		dst = append(dst, `,"text_truncated":true`...)
	}
	if fields.Has(FieldSimHash) {
		dst = optText(dst, `,"simhash":`, r.SimHash)
	}
	if fields.Has(FieldIP) {
		dst = optText(dst, `,"ip":`, r.IP)
	}
	if fields.Has(FieldProtocol) {
		dst = optText(dst, `,"protocol":`, r.Protocol)
	}
	return dst
}

// appendPairs appends headers, of which there are some; with hide, those that IsSecret
// names have no value.
func appendPairs(dst []byte, headers [][2]string, hide bool) []byte {
	sep := `[[`
	for _, h := range headers {
		dst = appendText(dst, sep, h[0])
		value := h[1]
		if hide && IsSecret(h[0]) {
			value = ""
		}
		dst = appendText(dst, `,`, value)
		sep = `],[`
	}
	return append(dst, `]]`...)
}

func optText(dst []byte, name, s string) []byte {
	if s == "" {
		return dst
	}
	return appendText(dst, name, s)
}

func appendText(dst []byte, name, s string) []byte {
	dst = append(dst, name...)
	dst = append(dst, '"')
	dst = appendEscaped(dst, s, false)
	return append(dst, '"')
}

func appendNumber(dst []byte, name string, n int64) []byte {
	return strconv.AppendInt(append(dst, name...), n, 10)
}

// appendFloat writes f as encoding/json does.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, '0')
	}
	abs := math.Abs(f)
	if abs == 0 || (abs >= 1e-6 && abs < 1e21) {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' { // e-09 -> e-9
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

const hexDigits = "0123456789abcdef"

// plain holds true for the ASCII bytes that stand for themselves in a string.
var plain = func() (t [utf8.RuneSelf]bool) {
	for c := ' '; c < 0x7f; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()

// appendEscaped appends the inside of a JSON string. With quoted, s is such
// an inside already: backslashes and what follows them stay.
func appendEscaped[T string | []byte](dst []byte, s T, quoted bool) []byte {
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if quoted && c == '\\' {
				if n := surrogates(s[i:]); n == 1 {
					dst = append(append(dst, s[start:i]...), `\ufffd`...)
					i += len(`\ufffd`)
					start = i
				} else {
					i += max(2, 6*n)
				}
				continue
			}
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[start:i]...)
			dst = appendControl(dst, c)
			i++
			start = i
			continue
		}
		r, n := utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
		if (r == utf8.RuneError && n == 1) || r < 0xa0 || r == '\u2028' || r == '\u2029' {
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
			start = i + n
		}
		i += n
	}
	return append(dst, s[start:]...)
}

// surrogates is how many escapes at the start of s are surrogates: two are a pair,
// one is half a pair, which not all readers of JSON take.
func surrogates[T string | []byte](s T) int {
	switch {
	case !isSurrogate(s, '8', 'f'):
		return 0
	case isSurrogate(s, '8', 'b') && isSurrogate(s[6:], 'c', 'f'):
		return 2
	}
	return 1
}

// isSurrogate reports whether s begins with the escape of a surrogate whose third digit
// is one of those from low to high.
func isSurrogate[T string | []byte](s T, low, high byte) bool {
	return len(s) >= 6 && s[0] == '\\' && s[1] == 'u' && s[2]|0x20 == 'd' && s[3]|0x20 >= low && s[3]|0x20 <= high
}

func appendControl(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}

// appendRaw appends JSON without the blanks between its tokens, so that it
// keeps to its line.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if !json.Valid(raw) {
		return appendText(dst, "", strings.TrimSpace(string(raw)))
	}
	s := []byte(raw)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\r', '\n':
		case '"':
			end := i + 1
			for s[end] != '"' {
				if s[end] == '\\' {
					end++
				}
				end++
			}
			dst = append(dst, '"')
			dst = appendEscaped(dst, s[i+1:end], true)
			dst = append(dst, '"')
			i = end
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
