package preference

// form is a way to say what may be done with pages.
type form uint8

const (
	robots        form = iota // the directives of search engines, and noai of image hosts
	contentUsage              // draft-ietf-aipref-vocab-08
	contentSignal             // draft-romm-aipref-contentsignals-00
	tdmrep                    // TDM Reservation Protocol, report of 10 May 2024
)

// Place is where a word stands.
type Place uint8

const (
	RobotsHeader Place = iota
	RobotsMeta
	UsageHeader
	UsageRule
	SignalRule
	TDMFile
	TDMHeader
	TDMMeta
	places
)

var placeNames = [places]string{
	"X-Robots-Tag", "meta robots", "Content-Usage", "robots.txt Content-Usage", "robots.txt Content-Signal",
	"tdmrep.json", "TDM header", "meta TDM",
}

// words is the one table of what each word of each form says of each use. A word whose
// row is empty is known and silent: it speaks of something else, or states a default that
// lifts nothing. Words that are not here are unknown to their form, and ignored.
//
// A form is silent on what it never speaks of: robots directives on tdm, Content-Usage
// and Content Signals on tdm and archive, TDMRep on all but tdm. The drafts have a use
// inside another one no more, so no answer follows from another.
var words = [...]struct {
	form   form
	word   string
	says   [Uses]Answer
	images bool // it speaks of images alone, so of an answer that is one
}{
	{robots, "noindex", [Uses]Answer{Search: No}, false},
	{robots, "none", [Uses]Answer{Search: No}, false},               // noindex and nofollow
	{robots, "unavailable_after", [Uses]Answer{Search: No}, false},  // once its time is over
	{robots, "nosnippet", [Uses]Answer{AIInput: No}, false},         // Google: also no direct input of its AI answers
	{robots, "max-snippet:0", [Uses]Answer{AIInput: No}, false},     // the same as nosnippet; other lengths are silent
	{robots, "noarchive", [Uses]Answer{Archive: No}, false},         // no copy for others to see
	{robots, "nocache", [Uses]Answer{Archive: No}, false},           // Bing's name of it
	{robots, "noai", [Uses]Answer{AITrain: No}, false},              // not for data sets of machine learning
	{robots, "noimageai", [Uses]Answer{AITrain: No}, true},          // the same of images
	{robots, "noimageindex", [Uses]Answer{Search: No}, true},        // no image of a search
	{robots, "nofollow", [Uses]Answer{}, false},                     // of links
	{robots, "all", [Uses]Answer{}, false},                          // the default
	{robots, "index", [Uses]Answer{}, false},                        // the default
	{robots, "follow", [Uses]Answer{}, false},                       // the default
	{robots, "max-snippet", [Uses]Answer{}, false},                  // of how results look
	{robots, "max-image-preview", [Uses]Answer{}, false},            // of how results look
	{robots, "max-video-preview", [Uses]Answer{}, false},            // of how results look
	{robots, "notranslate", [Uses]Answer{}, false},                  // of how results look
	{robots, "nositelinkssearchbox", [Uses]Answer{}, false},         // of how results look
	{robots, "indexifembedded", [Uses]Answer{}, false},              // of frames
	{contentUsage, "search=y", [Uses]Answer{Search: Yes}, false},    //
	{contentUsage, "search=n", [Uses]Answer{Search: No}, false},     //
	{contentUsage, "ai-use=y", [Uses]Answer{AIInput: Yes}, false},   //
	{contentUsage, "ai-use=n", [Uses]Answer{AIInput: No}, false},    //
	{contentUsage, "train-ai=y", [Uses]Answer{AITrain: Yes}, false}, //
	{contentUsage, "train-ai=n", [Uses]Answer{AITrain: No}, false},  //
	{contentSignal, "search=yes", [Uses]Answer{Search: Yes}, false}, //
	{contentSignal, "search=no", [Uses]Answer{Search: No}, false},   //
	{contentSignal, "ai-input=yes", [Uses]Answer{AIInput: Yes}, false},
	{contentSignal, "ai-input=no", [Uses]Answer{AIInput: No}, false}, //
	{contentSignal, "ai-train=yes", [Uses]Answer{AITrain: Yes}, false},
	{contentSignal, "ai-train=no", [Uses]Answer{AITrain: No}, false}, //
	{tdmrep, "tdm-reservation=0", [Uses]Answer{TDM: Yes}, false},     //
	{tdmrep, "tdm-reservation=1", [Uses]Answer{TDM: No}, false},      // a policy may offer what is reserved
}

// wordOf finds a word of a form, -1 where it has none such.
func wordOf(f form, word string) int {
	for i := range words {
		if words[i].form == f && words[i].word == word {
			return i
		}
	}
	return -1
}
