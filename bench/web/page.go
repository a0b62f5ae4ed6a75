package web

import (
	"strconv"
)

// link is one link of a page.
type link struct {
	site int
	kind kind
	n    int
	step int
}

// links calls yield for every link of page n of a site, in the order of the
// page, except those that no crawler follows.
func (w *Web) links(site, n int, yield func(link)) {
	d := dice(w.roll(site, n, forLinks))
	child, end := n*w.fanout+1, min(n*w.fanout+w.fanout+1, w.sizes[site])
	every := max(1, w.cfg.Links/w.fanout)
	for i := range w.cfg.Links {
		if i%every == every-1 && child < end {
			yield(w.entry(site, child))
			child++
			continue
		}
		yield(w.known(&d, site, n))
	}
	for ; child < end; child++ {
		yield(w.entry(site, child))
	}
	if n == 0 { // the roots of sites form a tree of their own
		for t := 2*site + 1; t <= 2*site+2 && t < len(w.sizes); t++ {
			yield(link{site: t, kind: kindPage})
		}
	}
	w.extras(site, n, func(k kind) {
		if k != kindSecret && k != kindImage {
			yield(link{site: site, kind: k, n: n})
		}
	})
}

// Links calls yield with the canonical URL of every link of page n of a site
// that a crawler follows, in the order of the page. url is valid during the call.
func (w *Web) Links(site, n int, yield func(url []byte)) {
	var buf []byte
	w.links(site, n, func(l link) {
		buf = w.appendURL(buf[:0], l.site, l.kind, l.n, l.step)
		yield(buf)
	})
}

// AppendPage appends the body of page n of a site, as it is before compression.
func (w *Web) AppendPage(dst []byte, site, n int) []byte { return w.appendPage(dst, site, n) }

// entry is the link that leads to a page from its parent: maybe a redirect.
func (w *Web) entry(site, n int) link {
	if hops := w.traits(site, n).hops; hops > 0 {
		return link{site: site, kind: kindRedirect, n: n, step: hops}
	}
	return link{site: site, kind: kindPage, n: n}
}

// known is a link to a page that a crawl in order knows by then, or to
// another site, and never to what a right crawl does not fetch.
func (w *Web) known(d *dice, site, n int) link {
	to, limit := site, n+1
	if d.chance(200) {
		if to = d.below(len(w.sizes)); to != site {
			limit = w.sizes[to]
		}
	}
	// The square prefers low numbers, as menus do.
	u := float64(d.below(1<<20)) / (1 << 20)
	page := int(u * u * float64(limit))
	if !w.reachable(to, page, view{}) {
		page = 0
	}
	if d.chance(100) {
		return w.entry(to, page)
	}
	return link{site: to, kind: kindPage, n: page}
}

// title of a page, UTF-8.
func (w *Web) title(site, n int) string {
	return "Page " + strconv.Itoa(n) + " of " + w.Host(site) + ": " + w.sets[w.traits(site, n).charset].text
}

// appendPage appends the HTML of page n of a site, in the page's encoding.
func (w *Web) appendPage(dst []byte, site, n int) []byte {
	t := w.traits(site, n)
	if t.tiny {
		return dst
	}
	set := &w.sets[t.charset]
	if set.wide != nil {
		text, err := set.wide.NewEncoder().Bytes(w.appendHTML(nil, site, n, t, set))
		if err != nil {
			return dst // UTF-16 writes everything
		}
		return append(dst, text...)
	}
	return w.appendHTML(dst, site, n, t, set)
}

func (w *Web) appendHTML(dst []byte, site, n int, t traits, set *charset) []byte {
	dst = append(dst, "<!DOCTYPE html>\n<html><head>"...)
	if w.declaresInPage(site, n) {
		dst = append(append(append(dst, `<meta charset="`...), set.name...), `">`...)
	}
	dst = append(dst, "<title>Page "...)
	dst = strconv.AppendInt(dst, int64(n), 10)
	dst = append(append(dst, " of s"...), strconv.Itoa(site)...)
	dst = append(append(append(dst, domain+": "...), set.coded...), "</title>\n"...)
	switch {
	case t.nofollow && t.noindex:
		dst = append(dst, `<META NAME="Robots" CONTENT="NoIndex, NoFollow">`...)
	case t.nofollow:
		dst = append(dst, `<meta content=nofollow name=robots>`...)
	case t.noindex:
		dst = append(dst, `<meta name="robots" content="noindex">`...)
	}
	dst = append(dst, "</head>\n<body>\n<ul>\n"...)
	d := dice(w.roll(site, n, forText))
	w.links(site, n, func(l link) { dst = w.appendLink(dst, &d, site, n, l) })
	w.extras(site, n, func(k kind) {
		if k == kindSecret || k == kindImage {
			dst = w.appendHidden(dst, &d, site, k, n)
		}
	})
	dst = append(append(append(dst, "</ul>\n<p>"...), set.coded...), "</p>\n"...)
	for end := len(dst) + t.huge; len(dst) < end; {
		dst = append(dst, "<p>And so on, and so on, through a page that is much longer than others.</p>\n"...)
	}
	return append(dst, "</body></html>\n"...)
}

// declaresInPage says where the encoding of a page is declared: in a meta tag,
// else in the header.
func (w *Web) declaresInPage(site, n int) bool {
	t := w.traits(site, n)
	return w.sets[t.charset].wide == nil && w.roll(site, n, forText)&3 == 0
}

// appendLink appends one link as an element.
func (w *Web) appendLink(dst []byte, d *dice, site, n int, l link) []byte {
	if w.cfg.Features&Spellings == 0 {
		dst = append(dst, `<li><a href="`...)
		dst = w.appendSpelling(dst, d, site, n, l)
		dst = append(dst, `">`...)
	} else {
		dst = w.appendElement(dst, d, site, n, l)
	}
	dst = append(dst, words[d.below(len(words))]...)
	dst = append(append(dst, ' '), words[d.below(len(words))]...)
	return append(dst, "</a>\n"...)
}

func (w *Web) appendElement(dst []byte, d *dice, site, n int, l link) []byte {
	before, after := `<li><a href="`, `">`
	switch d.below(20) {
	case 0:
		before, after = `<li><A class=x HREF='`, `'>`
	case 1:
		before, after = "<li><a\n\ttitle=\"a > b\"  href = \"", `" >`
	case 2:
		before, after = `<map><area href="`, `"></map><a>`
	case 3:
		before, after = `<iframe src="`, `"></iframe><a>`
	case 4:
		before, after = `<li><a href="`, `" rel="noopener external"/>`
	case 5:
		before, after = `<svg></svg><li><a/href="`, `">`
	}
	dst = append(dst, before...)
	dst = w.appendSpelling(dst, d, site, n, l)
	return append(dst, after...)
}

// appendHidden appends what looks like a link and is not to be followed.
func (w *Web) appendHidden(dst []byte, d *dice, site int, k kind, n int) []byte {
	before, after := `<li><a rel="nofollow" href="`, `">no</a>`
	switch {
	case k == kindImage:
		before, after = `<img src="`, `" alt="">`
	default:
		switch d.below(5) {
		case 0:
			before, after = `<!-- <a href="`, `">old</a> -->`
		case 1:
			before, after = `<script>document.write('<a href="`, `">')</script>`
		case 2:
			before, after = `<li><A HREF="`, `" REL='external NoFollow'>no</A>`
		case 3:
			before, after = `<textarea><a href="`, `"></textarea>`
		}
	}
	dst = append(dst, before...)
	dst = w.appendPath(dst, site, k, n, 0)
	return append(append(dst, after...), '\n')
}
