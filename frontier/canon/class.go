package canon

// What a byte means to the passes over a URL, as bits that a pass gathers with
// OR. Sets after https://url.spec.whatwg.org/#percent-encoded-bytes.
const (
	slash      uint16 = 1 << iota // '/'
	dotty                         // '.' and '%': may start a dot segment; must be slash << 1
	colon                         // ':'
	percent                       // '%'
	stopPath                      // ends a path, or makes it a case for the library
	stopQuery                     // ends a query, or makes it a case for the library
	escPath                       // is escaped in a path
	escQuery                      // is escaped in a query
	high                          // beyond ASCII
	notHost                       // not of [A-Za-z0-9._-]
	upper                         // A-Z
	unreserved                    // RFC 3986: letters, digits, "-._~"
	notScheme                     // not of [A-Za-z0-9.+-]
)

// Names of the common combinations, for the table.
const (
	ctl   = escPath | escQuery | notHost | notScheme
	cut   = ctl | stopPath | stopQuery
	both  = ctl
	inPth = escPath | notHost | notScheme
	other = notHost | notScheme
	alnum = unreserved
	up    = unreserved | upper
	big   = high | ctl
)

const upperHex = "0123456789ABCDEF"

// class says what each byte means.
var class = [256]uint16{
	ctl, ctl, ctl, ctl, ctl, ctl, ctl, ctl,
	ctl, cut, cut, ctl, ctl, cut, ctl, ctl,
	ctl, ctl, ctl, ctl, ctl, ctl, ctl, ctl,
	ctl, ctl, ctl, ctl, ctl, ctl, ctl, ctl,
	both,                         // space
	other,                        // !
	both,                         // "
	stopPath | stopQuery | other, // #
	other,                        // $
	percent | dotty | other,      // %
	other,                        // &
	escQuery | other,             // '
	other, other, other,          // ( ) *
	notHost,                                                // +
	other,                                                  // ,
	unreserved,                                             // -
	dotty | unreserved,                                     // .
	slash | other,                                          // /
	alnum, alnum, alnum, alnum, alnum, alnum, alnum, alnum, // '0'..'7'
	alnum, alnum, // 8 9
	colon | other,              // :
	other,                      // ;
	both,                       // <
	other,                      // =
	both,                       // >
	stopPath | other,           // ?
	other,                      // @
	up, up, up, up, up, up, up, // A B C D E F G
	up, up, up, up, up, up, up, up, // 'H'..'O'
	up, up, up, up, up, up, up, up, // 'P'..'W'
	up, up, up, // X Y Z
	other,                                           // [
	stopPath | other,                                // \
	other,                                           // ]
	inPth,                                           // ^
	unreserved | notScheme,                          // _
	inPth,                                           // `
	alnum, alnum, alnum, alnum, alnum, alnum, alnum, // a b c d e f g
	alnum, alnum, alnum, alnum, alnum, alnum, alnum, alnum, // 'h'..'o'
	alnum, alnum, alnum, alnum, alnum, alnum, alnum, alnum, // 'p'..'w'
	alnum, alnum, alnum, // x y z
	inPth,              // {
	other,              // |
	inPth,              // }
	unreserved | other, // ~
	ctl,                // DEL
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
	big, big, big, big, big, big, big, big,
}

// unhex is the value of a hexadecimal digit, 255 of any other byte.
var unhex = [256]uint8{
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 255, 255, 255, 255, 255, 255,
	255, 10, 11, 12, 13, 14, 15, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 10, 11, 12, 13, 14, 15, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
}
