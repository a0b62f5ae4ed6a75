package robots

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// usage is a line that says what may be done with the pages that its pattern matches. What
// its value means is for package preference to say.
type usage struct {
	label uint8 // in usageLabels
	on    Rules // one rule; without pattern: all pages
	value string
}

func (u *usage) rule() *rule { return &u.on.rules[0] }

// usageLabels are the labels of such lines. The last one is of no robots.txt: see AddUsage.
var usageLabels = [...]string{"content-usage", "content-signal", "license", "tdmrep"}

const (
	labelUsage = iota
	labelSignal
	labelLicense
	labelFirst // and those behind it: of several lines that match the first one counts
)

const (
	// maxUsage is how many lines of a file are kept, and maxUsageBytes how much text.
	maxUsage      = 100
	maxUsageBytes = 4 << 10
)

// labelOf is the label that a key is, -1 for none.
func labelOf(key []byte) int {
	for i, name := range usageLabels[:labelFirst] {
		if len(key) == len(name) && strings.EqualFold(string(key), name) {
			return i
		}
	}
	return -1
}

// newUsage reads the value of a line. A pattern begins with a slash and ends at the first
// blank (draft-ietf-aipref-attach-05, section 3.2; Content Signals are written likewise).
func newUsage(label int, value []byte, line int) usage {
	var on rule
	if label != labelLicense && len(value) > 0 && value[0] == '/' {
		end := bytes.IndexAny(value, " \t")
		if end < 0 {
			end = len(value)
		}
		on, value = compile(value[:end], true, line), trim(value[end:])
	}
	on.line = int32(line)
	return usage{uint8(label), Rules{rules: []rule{on}}, string(value)}
}

// within is the lines that the bounds of maxUsage leave, the first ones.
func within(lines []usage) []usage {
	size := 0
	for i := range lines {
		if size += len(lines[i].rule().pattern) + len(lines[i].value); i == maxUsage || size > maxUsageBytes {
			return lines[:i]
		}
	}
	return lines
}

// HasUsage reports whether the file says anything of what may be done with pages.
func (r *Rules) HasUsage() bool { return len(r.usage) > 0 }

// EachUsage calls say with the lines that count for path, which is one as of Allowed. Of
// those of a label the longest pattern counts, and of patterns of one length each
// (draft-ietf-aipref-attach-05, section 3.1). Where path may not be fetched, none does.
func (r *Rules) EachUsage(path []byte, say func(label, value string)) {
	if len(r.usage) == 0 || !r.Allowed(path) {
		return
	}
	var best [len(usageLabels)]int32 // of each label that a line matched: its rank
	var ranks [2 * maxUsage]int32
	for i := range r.usage {
		if u := &r.usage[i]; u.on.match(path) != nil {
			ranks[i] = u.rank(i)
			best[u.label] = max(best[u.label], ranks[i])
		}
	}
	for i := range r.usage {
		if u := &r.usage[i]; ranks[i] > 0 && ranks[i] == best[u.label] {
			say(usageLabels[u.label], u.value)
		}
	}
}

// rank is what the i-th line counts among those of its label that match: the highest does.
func (u *usage) rank(i int) int32 {
	if u.label >= labelFirst {
		return 2*maxUsage - int32(i)
	}
	return u.rule().priority + 1
}

// Usage is a line that says what may be done with pages.
type Usage struct {
	Label   string `json:"label"`             // content-usage, content-signal, license or tdmrep
	Pattern string `json:"pattern,omitempty"` // of the pages in normal form, "" = all
	Value   string `json:"value"`
	Line    int    `json:"line,omitempty"` // in the file, from 1; 0 for tdmrep
}

// Usages are those lines, for tools. It allocates.
func (r *Rules) Usages() (list []Usage) {
	for i := range r.usage {
		u := &r.usage[i]
		list = append(list, Usage{usageLabels[u.label], u.rule().text(), u.value, int(u.rule().line)})
	}
	return list
}

// AddTDM adds the rules of the TDM file of the origin in their order: pattern and value by
// turns. It is called once, before anybody else has the Rules, and where there is no such
// file, without any.
func (r *Rules) AddTDM(rules ...string) {
	r.tdm = true
	var lines []usage
	for ; len(rules) >= 2; rules = rules[2:] {
		if pattern := trim([]byte(rules[0])); len(pattern) > 0 {
			lines = append(lines, usage{labelFirst, Rules{rules: []rule{compile(pattern, true, 0)}}, rules[1]})
		}
	}
	r.usage = append(r.usage, within(lines)...)
}

// HasTDM reports whether AddTDM was called.
func (r *Rules) HasTDM() bool { return r.tdm }

// appendUsage appends the lines to the compact form, which has nothing of them where there
// are none.
func (r *Rules) appendUsage(dst []byte) []byte {
	if len(r.usage) == 0 && !r.tdm {
		return dst
	}
	tdm := uint64(0)
	if r.tdm {
		tdm = 1
	}
	dst = binary.AppendUvarint(dst, tdm|uint64(len(r.usage))<<1)
	for i := range r.usage {
		u := &r.usage[i]
		dst = append(dst, u.label)
		dst = appendString(appendRule(dst, u.rule(), nil), u.value)
	}
	return dst
}

// usage reads what appendUsage wrote.
func (d *decoder) usage(r *Rules) {
	if d.bad || len(d.rest) == 0 {
		return
	}
	n := d.number(2*maxUsage<<1 | 1)
	r.tdm = n&1 != 0
	for n >>= 1; n > 0 && !d.bad; n-- {
		u := usage{label: uint8(d.number(uint64(len(usageLabels) - 1)))}
		u.on.rules = []rule{d.rule(nil)}
		u.value = string(d.bytes(nil))
		r.usage = append(r.usage, u)
	}
	d.bad = d.bad || len(r.usage) == 0 && !r.tdm
}
