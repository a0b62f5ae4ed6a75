// Package markdown turns Markdown into the HTML that it stands for, so that whoever reads
// links, titles and text of HTML reads those of Markdown.
//
// It is CommonMark, parsed by a library into a tree of the whole document. So callers bound
// a document's size, and this package bounds what hostile ones could make of it. The time of
// the library grows with the square of a paragraph's length, and it calls itself for each
// list and quote: both have a bound. The tree is walked without a stack. As many documents
// are read at once as there are processors: more would only take more memory.
//
// Nothing outlives a call, and a crash loses nothing.
package markdown

import (
	"bufio"
	"bytes"
	"fmt"
	"runtime"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

const (
	// longest is how many bytes of lines may follow each other without a blank one: more
	// are parted.
	longest = 4 << 10
	// deepest is how many lists and quotes one line may begin.
	deepest = 32
	// widest is how much white space in front of a line counts: lists in lists have it.
	widest = 4 * deepest
)

// busy has as many places as documents may be read at once.
var busy = make(chan struct{}, runtime.GOMAXPROCS(0))

// parser is safe for any number of goroutines.
var parser = goldmark.DefaultParser()

// AppendHTML appends to dst what doc is in HTML: first its title, which is its first
// heading of level 1, or its first heading; then links, images, text and its own HTML. It
// keeps neither metadata in front of it (YAML between two lines of ---) nor what tells
// emphasis apart. It allocates some fifty times the document, and takes 0.1 ms a KB. It never
// panics: err says that the library did, and dst is as it was.
func AppendHTML(dst, doc []byte) (_ []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("markdown: %v", v)
		}
	}()
	busy <- struct{}{}
	defer func() { <-busy }()
	src := part(withoutMetadata(doc))
	root := parser.Parse(text.NewReader(src))
	out := bytes.NewBuffer(dst)
	w := &writer{src: src, BufWriter: bufio.NewWriter(out)}
	if h := title(root); h != nil {
		w.WriteString("<title>") //nolint:errcheck // a buffer takes all
		w.isTitle = true
		w.walk(h)
		w.isTitle = false
		w.WriteString("</title>") //nolint:errcheck
	}
	w.walk(root)
	w.Flush() //nolint:errcheck
	return out.Bytes(), nil
}

// title is the heading that names a document, nil where there is none.
func title(root ast.Node) (first ast.Node) {
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		h, ok := n.(*ast.Heading)
		if ok && h.Level == 1 {
			return h
		}
		if ok && first == nil {
			first = h
		}
	}
	return first
}

// writer writes HTML.
type writer struct {
	util.BufWriter
	src     []byte
	isTitle bool // text only
}

// walk writes a node and all below it.
func (w *writer) walk(root ast.Node) {
	n := root
	for {
		if w.enter(n) && n.FirstChild() != nil {
			n = n.FirstChild()
			continue
		}
		for {
			w.leave(n)
			if n == root {
				return
			}
			if next := n.NextSibling(); next != nil {
				n = next
				break
			}
			n = n.Parent()
		}
	}
}

// enter writes what comes before a node's children, and reports whether they count.
func (w *writer) enter(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.Text:
		if value := n.Value(w.src); n.IsRaw() {
			html.DefaultWriter.RawWrite(w, value)
		} else {
			html.DefaultWriter.Write(w, value)
		}
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.WriteByte('\n') //nolint:errcheck
		}
	case *ast.String:
		html.DefaultWriter.RawWrite(w, n.Value)
	case *ast.CodeSpan:
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				html.DefaultWriter.RawWrite(w, t.Value(w.src))
			}
		}
		return false
	case *ast.Link:
		w.open(`<a href="`, util.URLEscape(n.Destination, true))
	case *ast.Image:
		w.open(`<img src="`, util.URLEscape(n.Destination, true))
		return false
	case *ast.AutoLink:
		url := util.URLEscape(n.URL(w.src), false)
		if n.AutoLinkType == ast.AutoLinkEmail {
			url = append([]byte("mailto:"), url...)
		}
		w.open(`<a href="`, url)
		html.DefaultWriter.RawWrite(w, n.Label(w.src))
		w.tag("</a>")
	case *ast.RawHTML:
		w.raw(n.Segments)
		return false
	case *ast.HTMLBlock:
		w.raw(n.Lines())
		if n.HasClosure() && !w.isTitle {
			w.Write(n.ClosureLine.Value(w.src)) //nolint:errcheck
		}
		return false
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		w.tag("<pre>")
		for i := range n.Lines().Len() {
			line := n.Lines().At(i)
			html.DefaultWriter.RawWrite(w, line.Value(w.src))
		}
		w.tag("</pre>")
		return false
	default:
		if n.Type() == ast.TypeBlock {
			w.tag("<p>")
		}
	}
	return true
}

// leave writes what comes behind a node's children.
func (w *writer) leave(n ast.Node) {
	if n.Kind() == ast.KindLink {
		w.tag("</a>")
	}
}

func (w *writer) tag(t string) {
	if !w.isTitle {
		w.WriteString(t) //nolint:errcheck
	}
}

// open writes a tag whose last attribute is a URL.
func (w *writer) open(tag string, url []byte) {
	if !w.isTitle {
		w.WriteString(tag)            //nolint:errcheck
		w.Write(util.EscapeHTML(url)) //nolint:errcheck
		w.WriteString(`">`)           //nolint:errcheck
	}
}

// raw writes HTML of the document.
func (w *writer) raw(lines *text.Segments) {
	for i := 0; i < lines.Len() && !w.isTitle; i++ {
		line := lines.At(i)
		w.Write(line.Value(w.src)) //nolint:errcheck
	}
}

// withoutMetadata is doc behind the YAML that many generators of sites put in front of it.
func withoutMetadata(doc []byte) []byte {
	first, rest, _ := bytes.Cut(doc, []byte("\n"))
	if string(bytes.TrimRight(first, " \t\r")) != "---" {
		return doc
	}
	for len(rest) > 0 {
		var line []byte
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		if string(bytes.TrimRight(line, " \t\r")) == "---" {
			return rest
		}
	}
	return doc
}

// part returns doc with a blank line wherever a paragraph is longer than longest. It leaves
// out lines that begin more than deepest lists and quotes, and all but widest of the white
// space in front of a line. A doc that has none of these is returned as it is.
func part(doc []byte) []byte {
	var out []byte
	from, run := 0, 0 // what is not in out yet, and how long the paragraph is
	for at := 0; at < len(doc); {
		end := len(doc)
		if i := bytes.IndexByte(doc[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line := doc[at:end]
		if white := len(line) - len(bytes.TrimLeft(line, " \t")); white > widest {
			out = append(out, doc[from:at]...)
			at += white - widest
			from, line = at, doc[at:end]
		}
		switch {
		case len(bytes.TrimSpace(line)) == 0:
			run = 0
		case begins(line) > deepest:
			out = append(out, doc[from:at]...)
			from = end
		default:
			for run+len(line) > longest {
				cut := 0 // before the line, unless it is too long by itself
				if run == 0 {
					cut = longest
					if space := bytes.LastIndexByte(line[:cut], ' '); space > 0 {
						cut = space
					}
				}
				out = append(append(out, doc[from:at+cut]...), "\n\n"...)
				at += cut
				from, run, line = at, 0, line[cut:]
			}
			run += len(line)
		}
		at = end
	}
	if from == 0 {
		return doc
	}
	return append(out, doc[from:]...)
}

// begins is how many lists and quotes a line begins, about.
func begins(line []byte) (n int) {
	for i, ch := range line {
		switch {
		case ch == '>':
			n++
		case ch == '-', ch == '+', ch == '*', ch == '.', ch == ')':
			if i+1 < len(line) && (line[i+1] == ' ' || line[i+1] == '\t') {
				n++
			}
		case ch != ' ' && ch != '\t' && (ch < '0' || ch > '9'):
			return n
		}
	}
	return n
}
