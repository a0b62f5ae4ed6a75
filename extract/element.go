package extract

import "strings"

// newNames builds the table of elements for the kinds of link that are wanted.
func newNames(cfg *Config) *names {
	n := &names{}
	addAll := func(list string, flags tagFlags) {
		for name := range strings.FieldsSeq(list) {
			n.add(name, tagOther, flags)
		}
	}
	addAll("base basefont bgsound link meta title noscript noframes style script template html head", flagHead)
	addAll(`b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta
		nobr ol p pre ruby s small span strong strike sub sup table tt u ul var`, flagBreak)
	addAll(`address applet area article aside base basefont bgsound blockquote body br button caption center col colgroup
		dd details dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header
		hgroup hr html iframe img input keygen li link listing main marquee menu meta nav noembed noframes noscript object
		ol p param plaintext pre script search section select source style summary table tbody td template textarea tfoot
		th thead title tr track ul wbr xmp`, flagSpecial)
	addAll(`area base basefont bgsound br col embed frame hr image img input keygen link meta param source track wbr`, flagVoid)
	addAll(`address applet article aside blockquote button center dd details dialog dir div dl dt fieldset figcaption figure
		footer form h1 h2 h3 h4 h5 h6 header hgroup li listing main marquee menu nav object ol p pre search section summary
		table tbody td template tfoot th thead tr ul body html`, flagBlock)
	addAll(`address article aside blockquote center dd details dialog dir div dl dt fieldset figcaption figure footer form
		h1 h2 h3 h4 h5 h6 header hgroup hr li listing main menu nav ol p plaintext pre search section summary table ul xmp`, flagCloseP)
	addAll(`a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q rp rt ruby s samp small span
		strike strong sub sup time tt u var wbr`, flagInline)
	n.addRules()
	n.addLinks(cfg)
	n.heat()
	return n
}

// addRules names the elements that change how the rest is read.
func (n *names) addRules() {
	for _, r := range []struct {
		names string
		el    tagID
	}{
		{"base", tagBase}, {"head", tagHead}, {"html", tagHTML}, {"iframe", tagIFrame}, {"math", tagMath}, {"meta", tagMeta},
		{"plaintext", tagPlaintext}, {"xmp noembed noframes", tagRaw}, {"script", tagScript}, {"style", tagStyle},
		{"svg", tagSVG}, {"template", tagTemplate}, {"textarea", tagTextarea}, {"title", tagTitle}, {"link", tagLink},
		{"body", tagBody},
	} {
		for name := range strings.FieldsSeq(r.names) {
			n.add(name, r.el, flagRule)
		}
	}
	// Known by name, without a rule outside foreign content.
	for _, r := range []struct {
		names string
		el    tagID
	}{
		{"font", tagFont}, {"p", tagP}, {"annotation-xml", tagAnnotation}, {"foreignobject desc", tagHost},
		{"mi mo mn ms mtext", tagMathText}, {"mglyph malignmark", tagMathMark},
	} {
		for name := range strings.FieldsSeq(r.names) {
			n.add(name, r.el, 0)
		}
	}
}

// addLinks marks the elements whose attributes are worth a look.
func (n *names) addLinks(cfg *Config) {
	for _, r := range []struct {
		names string
		el    tagID
		kinds Kinds
	}{
		{"a", tagA, Of(Anchor)}, {"area", tagArea, Of(Area)}, {"audio", tagAudio, Of(Audio)},
		{"body", tagBody, Of(Background)}, {"table tbody thead tfoot tr td th", tagCell, Of(Background)},
		{"blockquote q ins del", tagCite, Of(Cite)}, {"embed", tagEmbed, Of(Embed)}, {"frame", tagFrame, Of(Frame)},
		{"iframe", tagIFrame, Of(IFrame)}, {"img image", tagImg, Of(Image, Srcset)}, {"input", tagInput, Of(Input)},
		{"object", tagObject, Of(Object)}, {"script", tagScript, Of(Script)}, {"source", tagSource, Of(Source, Srcset)},
		{"track", tagTrack, Of(Track)}, {"video", tagVideo, Of(Video)},
		// Facts and tree rules need the attributes of these whatever the kinds.
		{"base", tagBase, All}, {"html", tagHTML, All}, {"link", tagLink, All}, {"meta", tagMeta, All},
	} {
		if cfg.Kinds&r.kinds == 0 {
			continue
		}
		for name := range strings.FieldsSeq(r.names) {
			n.add(name, r.el, flagLook)
		}
	}
}
