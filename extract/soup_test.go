package extract

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// soupTags is what tag soup is made of: all that decides how what follows is
// read. Each %d becomes the link's own number.
const soupTags = `<a href=%d> </a> <p> </p> <div> </div> <svg> </svg> <svg/> <math> </math> <foreignObject> </foreignObject>
<desc> </desc> <title> </title> <style> </style> <script> </script> <textarea> </textarea> <template> </template>
<table> </table> <tr> <td> </td> <li> <ul> </ul> <mi> </mi> <annotation-xml/encoding=text/html> </annotation-xml>
<![CDATA[ ]]> <!-- --> <!--> --!> <img/src=%d> <br> </br> <font/color=red> <font> </font> <path/> <g> </g> <path>
<noscript> </noscript> <xmp> </xmp> <iframe/src=%d> </iframe> text <b> </b> <span> </span> <head> </head> <body>
<mglyph> <a/href=%d/> <h1> </h1> <form> </form> <button> </button> <noframes> </noframes> <script>a<!-- <a/href="%d"title='>'>`

// Random tag soup gives the links of the tree. Where it does not, an end tag
// stands in svg or math whose element is not open around it: the scanner keeps
// no stack there, and takes it to close the svg.
func TestTagSoup(t *testing.T) {
	tagBits := strings.Fields(soupTags)
	rng := rand.New(rand.NewPCG(9, 9))
	const rounds = 20_000
	differ := 0
	for range rounds {
		var b strings.Builder
		for i := range 3 + rng.IntN(8) {
			tag := tagBits[rng.IntN(len(tagBits))]
			if rng.IntN(4) == 0 {
				tag = "<a href=%d>"
			}
			b.WriteString(strings.ReplaceAll(tag, "%d", fmt.Sprint(i)))
		}
		want, got := comparePage(t, page{"soup", []byte(b.String())})
		if strings.Join(sorted(want), "|") == strings.Join(sorted(got), "|") {
			continue
		}
		differ++
		if !strings.Contains(b.String(), "<svg>") && !strings.Contains(b.String(), "<math>") {
			t.Errorf("%s: got %q, want %q", b.String(), sorted(got), sorted(want))
		}
	}
	if differ > rounds/500 {
		t.Errorf("%d of %d differ", differ, rounds)
	}
	t.Logf("%d of %d differ", differ, rounds)
}
