package charset

import (
	"sort"
	"unicode/utf8"

	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// combining are the second characters of the pointers of Big5 that mean two.
var combining = [...]rune{0x0304, 0x030C}

func fillBig5(l *legacy) {
	l.index = tabled(traditionalchinese.Big5, 126*157, func(p int) []byte { return []byte{byte(p/157 + 0x81), trail(p%157, 0x62)} })
	for p, r := range map[int]rune{1133: 0xCA | 1<<24, 1135: 0xCA | 2<<24, 1164: 0xEA | 1<<24, 1166: 0xEA | 2<<24} {
		l.index[p] = r
	}
	// The rows of Hong Kong are read only, and of six characters the last counts.
	l.point(func(p int) bool { return p >= (0xA1-0x81)*157 && l.index[p] < 1<<24 })
	for p, r := range l.index {
		switch r {
		case 0x2550, 0x255E, 0x2561, 0x256A, 0x5341, 0x5345:
			l.pointer[r] = int32(p)
		}
	}
}

func readBig5(l *legacy, b []byte) (rune, int) {
	if !between(b[0], 0x81, 0xFE) {
		return utf8.RuneError, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	p, row := -1, int(b[0]-0x81)*157
	switch c := b[1]; {
	case between(c, 0x40, 0x7E):
		p = row + int(c) - 0x40
	case between(c, 0xA1, 0xFE):
		p = row + int(c) - 0x62
	}
	return found(l.index, p, b[1])
}

func writeBig5(l *legacy, dst []byte, r rune) []byte {
	p, ok := l.pointer[r]
	if !ok {
		return dst
	}
	return append(dst, byte(p/157+0x81), trail(int(p%157), 0x62))
}

func fillEUCKR(l *legacy) {
	l.index = tabled(korean.EUCKR, 126*190, func(p int) []byte { return []byte{byte(p/190 + 0x81), byte(p%190 + 0x41)} })
	l.point(func(int) bool { return true })
}

func readEUCKR(l *legacy, b []byte) (rune, int) {
	if !between(b[0], 0x81, 0xFE) {
		return utf8.RuneError, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	p := -1
	if between(b[1], 0x41, 0xFE) {
		p = int(b[0]-0x81)*190 + int(b[1]) - 0x41
	}
	return found(l.index, p, b[1])
}

func writeEUCKR(l *legacy, dst []byte, r rune) []byte {
	p, ok := l.pointer[r]
	if !ok {
		return dst
	}
	return append(dst, byte(p/190+0x81), byte(p%190+0x41))
}

// shiftJIS has the whole index of JIS X 0208, which ISO-2022-JP and EUC-JP read too.
var shiftJIS = &legacy{fill: fillShiftJIS, read: readShiftJIS, write: writeShiftJIS}

func fillJIS(l *legacy) {
	l.index = tabled(japanese.ShiftJIS, 60*188, func(p int) []byte {
		return []byte{leadJIS(p / 188), trail(p%188, 0x41)}
	})
	l.point(func(int) bool { return true })
}

func leadJIS(row int) byte {
	if row < 0x1F {
		return byte(row + 0x81)
	}
	return byte(row + 0xC1)
}

// User-defined characters, and the rows of NEC that Shift_JIS does not write.
const (
	firstUser, afterUser = 8836, 10716
	firstNEC, afterNEC   = 8272, 8836
)

func fillShiftJIS(l *legacy) {
	fillJIS(l)
	l.point(func(p int) bool { return p < firstNEC || p >= afterNEC })
	for p := firstUser; p < afterUser; p++ { // read only
		l.index[p] = rune(0xE000 - firstUser + p)
	}
}

func readShiftJIS(l *legacy, b []byte) (rune, int) {
	switch c := b[0]; {
	case c == 0x80:
		return 0x80, 1
	case between(c, 0xA1, 0xDF):
		return rune(c) - 0xA1 + 0xFF61, 1
	case !between(c, 0x81, 0x9F) && !between(c, 0xE0, 0xFC):
		return utf8.RuneError, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	row := int(b[0]) - 0x81
	if b[0] >= 0xA0 {
		row = int(b[0]) - 0xC1
	}
	p := -1
	switch c := b[1]; {
	case between(c, 0x40, 0x7E):
		p = row*188 + int(c) - 0x40
	case between(c, 0x80, 0xFC):
		p = row*188 + int(c) - 0x41
	}
	return found(l.index, p, b[1])
}

func writeShiftJIS(l *legacy, dst []byte, r rune) []byte {
	switch {
	case r == 0x80:
		return append(dst, 0x80)
	case r == 0xA5:
		return append(dst, '\\')
	case r == 0x203E:
		return append(dst, '~')
	case r >= 0xFF61 && r <= 0xFF9F:
		return append(dst, byte(r-0xFF61+0xA1))
	case r == 0x2212:
		r = 0xFF0D
	}
	p, ok := l.pointer[r]
	if !ok {
		return dst
	}
	return append(dst, leadJIS(int(p/188)), trail(int(p%188), 0x41))
}

func fillEUCJP(l *legacy) {
	fillJIS(l)
	l.more = tabled(japanese.EUCJP, 94*94, func(p int) []byte { return []byte{0x8F, byte(p/94 + 0xA1), byte(p%94 + 0xA1)} })
}

func readEUCJP(l *legacy, b []byte) (rune, int) {
	if b[0] != 0x8E && b[0] != 0x8F && !between(b[0], 0xA1, 0xFE) {
		return utf8.RuneError, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	second := between(b[1], 0xA1, 0xFE)
	switch {
	case b[0] == 0x8E && between(b[1], 0xA1, 0xDF):
		return rune(b[1]) - 0xA1 + 0xFF61, 2
	case b[0] == 0x8E, !second:
		return found(nil, -1, b[1])
	case b[0] != 0x8F:
		return found(l.index, int(b[0]-0xA1)*94+int(b[1]-0xA1), b[1])
	case len(b) < 3:
		return 0, 0
	}
	p := -1
	if between(b[2], 0xA1, 0xFE) {
		p = int(b[1]-0xA1)*94 + int(b[2]-0xA1)
	}
	r, n := found(l.more, p, b[2])
	return r, n + 1
}

func writeEUCJP(l *legacy, dst []byte, r rune) []byte {
	switch {
	case r == 0xA5:
		return append(dst, '\\')
	case r == 0x203E:
		return append(dst, '~')
	case r >= 0xFF61 && r <= 0xFF9F:
		return append(dst, 0x8E, byte(r-0xFF61+0xA1))
	case r == 0x2212:
		r = 0xFF0D
	}
	p, ok := l.pointer[r]
	if !ok {
		return dst
	}
	return append(dst, byte(p/94+0xA1), byte(p%94+0xA1))
}

// gbRows are the rows of two bytes that x/text leaves out: the first pointer, the
// character there, and how many follow. GB 18030 has characters of one's own there,
// and those that were added to Unicode in its stead.
var gbRows = [...][3]int{
	{6080, 0xE4C6, 96}, {6270, 0xE526, 96}, {6376, 0xE766, 6}, {6433, 0xE76D, 1}, {6444, 0xE76E, 2},
	{6458, 0xE770, 2}, {6460, 0xE586, 95}, {6650, 0xE5E6, 96}, {6829, 0xE772, 11}, {6840, 0xE646, 96},
	{7022, 0xE77D, 8}, {7030, 0xE6A6, 96}, {7150, 0xE785, 8}, {7182, 0xFE10, 1}, {7183, 0xFE12, 1},
	{7184, 0xFE11, 1}, {7185, 0xFE13, 4}, {7201, 0xFE17, 2}, {7208, 0xFE19, 1}, {7211, 0xE797, 9},
	{7220, 0xE706, 96}, {7349, 0xE7A0, 15}, {7397, 0xE7AF, 13}, {7495, 0xE7BC, 11}, {7533, 0x1E3F, 1},
	{7538, 0xE7C9, 4}, {7579, 0xE7CD, 21}, {7624, 0xE7E2, 1}, {7627, 0xE7E3, 1}, {7629, 0xE7E4, 3},
	{7686, 0xE7F4, 13}, {7775, 0xE801, 15}, {7886, 0xE000, 94}, {8076, 0xE05E, 94}, {8266, 0xE0BC, 94},
	{8456, 0xE11A, 94}, {8646, 0xE178, 94}, {8836, 0xE1D6, 94}, {16525, 0xE810, 5}, {22706, 0xE234, 94},
	{22896, 0xE292, 94}, {23086, 0xE2F0, 94}, {23276, 0xE34E, 94}, {23466, 0xE3AC, 94}, {23656, 0xE40A, 94},
	{23767, 0xE816, 3}, {23775, 0x9FB4, 1}, {23783, 0x9FB5, 1}, {23788, 0x9FB6, 2}, {23794, 0xE831, 1},
	{23795, 0x9FB8, 1}, {23804, 0xE83B, 1}, {23812, 0x9FB9, 1}, {23829, 0x9FBA, 1}, {23830, 0xE855, 1},
	{23845, 0x9FBB, 1}, {23846, 0xE468, 94},
}

// gbOwn are the characters of one's own that GB 18030 had where the index has others
// now. They are still written so.
var gbOwn = map[rune]int32{
	0xE78D: 7182, 0xE78E: 7183, 0xE78F: 7184, 0xE790: 7185, 0xE791: 7186, 0xE792: 7187,
	0xE793: 7188, 0xE794: 7201, 0xE795: 7202, 0xE796: 7208, 0xE81E: 23775, 0xE826: 23783,
	0xE82B: 23788, 0xE82C: 23789, 0xE832: 23795, 0xE843: 23812, 0xE854: 23829, 0xE864: 23845,
}

func fillGB(l *legacy) {
	l.index = tabled(simplifiedchinese.GB18030, 126*190, func(p int) []byte { return []byte{byte(p/190 + 0x81), trail(p%190, 0x41)} })
	for _, row := range gbRows {
		for i := range row[2] {
			l.index[row[0]+i] = rune(row[1] + i)
		}
	}
	l.point(func(int) bool { return true })
	for r, p := range gbOwn {
		l.pointer[r] = p
	}
	l.more = tabled(simplifiedchinese.GB18030, 39420, func(p int) []byte { return fourBytes(p) })
	l.more[7457] = 0x1E3F // in order; it is read as U+E7C7
	l.more[39417] = utf8.RuneError
}

// fourBytes are those of a pointer of GB 18030.
func fourBytes(p int) []byte {
	return []byte{byte(p/12600 + 0x81), byte(p/1260%10 + 0x30), byte(p/10%126 + 0x81), byte(p%10 + 0x30)}
}

func readGB(l *legacy, b []byte) (rune, int) {
	if b[0] == 0x80 {
		return '€', 1
	}
	if b[0] == 0xFF {
		return utf8.RuneError, 1
	}
	if len(b) < 2 {
		return 0, 0
	}
	if between(b[1], '0', '9') {
		return readFour(l, b)
	}
	p, row := -1, int(b[0]-0x81)*190
	switch c := b[1]; {
	case between(c, 0x40, 0x7E):
		p = row + int(c) - 0x40
	case between(c, 0x80, 0xFE):
		p = row + int(c) - 0x41
	}
	return found(l.index, p, b[1])
}

// readFour reads four bytes; b has two of them.
func readFour(l *legacy, b []byte) (rune, int) {
	switch {
	case len(b) < 3:
		return 0, 0
	case !between(b[2], 0x81, 0xFE):
		return utf8.RuneError, 1
	case len(b) < 4:
		return 0, 0
	case !between(b[3], '0', '9'):
		return utf8.RuneError, 1
	}
	p := ((int(b[0]-0x81)*10+int(b[1]-'0'))*126+int(b[2]-0x81))*10 + int(b[3]-'0')
	switch {
	case p == 7457:
		return 0xE7C7, 4
	case p < len(l.more) && l.more[p] != 0:
		return l.more[p], 4
	case p >= 189000 && p <= 1237575:
		return rune(p - 189000 + 0x10000), 4
	}
	return utf8.RuneError, 4
}

func writeGBK(l *legacy, dst []byte, r rune) []byte {
	if r == '€' {
		return append(dst, 0x80)
	}
	p, ok := l.pointer[r]
	if !ok || r == 0xE5E5 {
		return dst
	}
	return append(dst, byte(p/190+0x81), trail(int(p%190), 0x41))
}

func writeGB18030(l *legacy, dst []byte, r rune) []byte {
	if p, ok := l.pointer[r]; ok {
		return append(dst, byte(p/190+0x81), trail(int(p%190), 0x41))
	}
	p := 7457
	switch {
	case r == 0xE5E5:
		return dst
	case r >= 0x10000:
		p = 189000 + int(r) - 0x10000
	case r != 0xE7C7:
		if p = sort.Search(len(l.more), func(i int) bool { return l.more[i] >= r }); p == len(l.more) || l.more[p] != r {
			return dst
		}
	}
	return append(dst, fourBytes(p)...)
}
