package frontier

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"seine/frontier/canon"
)

// maxLogText bounds what LogText returns, bytes.
const maxLogText = 120

// LogText is a text that is no URL, or an element of a feed, as it may be in a
// log: what looks like credentials masked, quoted, and cut to 120 bytes.
func LogText(text string) string {
	text = HideCredentials(text)
	shown := []byte{'"'}
	for len(text) > 0 {
		_, size := utf8.DecodeRuneInString(text)
		piece := strconv.Quote(text[:size])
		piece = piece[1 : len(piece)-1]
		if len(shown)+len(piece) > maxLogText-len(`…"`) {
			shown = append(shown, "…"...)
			break
		}
		shown = append(shown, piece...)
		text = text[size:]
	}
	return string(append(shown, '"'))
}

// OneLine is the text of a dead letter: without tabs and line ends.
func OneLine(text string) string {
	if strings.ContainsAny(text, "\t\r\n") {
		return strings.Join(strings.Fields(text), " ")
	}
	return text
}

// LogURL is a stored URL without its credentials.
func LogURL(url string) string {
	var u canon.URL
	if err := canon.NewParser(canon.Config{}).Parse(&u, []byte(url)); err != nil {
		return HideCredentials(url)
	}
	return u.String()
}

// hidden stands for credentials.
const hidden = "xxxxx"

// jsonString is a string of JSON, or the rest of one that breaks off.
var jsonString = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|\\?$)`)

// requestName is the name before the headers of a request, in JSON or what resembles it.
var requestName = regexp.MustCompile(`(?i)[{,"'\\]\s*(?:request|header)["'\\]*\s*:`)

// HideCredentials masks what looks like credentials: in JSON in each string, else
// in the text as a whole. In JSON it masks all strings behind "request" or "header". What
// is no JSON object, such as an entry that cannot be read, ends at such a name.
func HideCredentials(text string) string {
	isObject := strings.HasPrefix(strings.TrimSpace(text), "{")
	if name := requestName.FindStringIndex(text); name != nil && !(isObject && json.Valid([]byte(text))) {
		text = text[:name[1]] + " " + hidden
	}
	if isObject {
		return hideInJSON(text)
	}
	return maskURL(text)
}

func hideInJSON(text string) string {
	secret := false // what stands behind the headers of a request, too
	return jsonString.ReplaceAllStringFunc(text, func(s string) string {
		if secret {
			return `"` + hidden + `"`
		}
		var name string
		if json.Unmarshal([]byte(s), &name) == nil {
			secret = strings.EqualFold(name, "header") || strings.EqualFold(name, "request")
		}
		return maskURL(strings.ReplaceAll(s, `\u0040`, "@"))
	})
}

// scheme is where a text's credentials, if it has any, may begin.
var scheme = regexp.MustCompile(`^[\s"]*(?:[A-Za-z][A-Za-z0-9+.-]*:)?(?:\\?[/\\])*`)

// maskURL hides all from the scheme to the last @ of a text that need not be a
// URL. It would rather hide too much: a password may hold any byte. A mere
// mail address stays, and so does an @ in a path, unless there is a : before.
func maskURL(text string) string {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text
	}
	start := len(scheme.FindString(text))
	if head := strings.TrimLeft(text, "\" \t\r\n"); !strings.HasPrefix(head, "//") && !strings.Contains(text[:start], ":/") && !strings.Contains(text[:start], `:\`) {
		// "user:password@host" looks as if user were the scheme.
		start = len(text) - len(head)
	}
	if start >= at {
		return text
	}
	user := text[start:at]
	hasScheme := strings.ContainsAny(text[:start], `/\`)
	if !strings.Contains(user, ":") && (!hasScheme || strings.ContainsAny(user, `/\?#`)) {
		return text
	}
	return text[:start] + hidden + text[at:]
}
