package bloom

import (
	"encoding/json"
	"errors"
	"fmt"
)

// RecordVersion is the format of a Record as it is stored.
const RecordVersion = 1

// Record is what probing has found out about one filter over its life.
//
// A filter errs more often the fuller it is, so old probes speak too well of
// it. Probes are therefore counted in windows: one ends when the filter has
// grown by a tenth. The window before it counts on only until the new one has
// as many probes.
//
// Each window is also charged with the URLs that were admitted since the probes
// before: of so many new URLs, its rate of false positives was lost. Probes come
// after the URLs they stand for, when the filter is fuller, so the estimate errs
// on the high side; with frequent probes by little.
type Record struct {
	Version int     `json:"v"`
	Info            // as of the last probe
	All     Probe   `json:"all"`    // since the first probe
	Now     Probe   `json:"now"`    // of this window
	Before  Probe   `json:"before"` // of the window before
	Began   int64   `json:"began"`  // items when this window began
	Grown   int64   `json:"grown"`  // URLs charged to this window
	Ended   float64 `json:"ended"`  // URLs lost in the windows that ended
}

// ErrVersion: a record is of another version of this program.
var ErrVersion = errors.New("bloom: record of another version")

// ParseRecord reads a record as it is stored, in JSON. Numbers that no probing
// leads to are an error too: estimates of them would be no numbers.
func ParseRecord(text string) (Record, error) {
	var r Record
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Record{}, fmt.Errorf("bloom: record: %w", err)
	}
	if r.Version != RecordVersion {
		return Record{}, fmt.Errorf("%w %d, this one knows %d", ErrVersion, r.Version, RecordVersion)
	}
	least := min(r.Items, r.Capacity, r.Bytes, int64(r.Layers), int64(r.Expansion), r.Began, r.Grown)
	for _, p := range []Probe{r.All, r.Now, r.Before} {
		least = min(least, p.Hits, p.N-p.Hits)
	}
	if least < 0 || !(r.Ended >= 0) {
		return Record{}, errors.New("bloom: record: its counts contradict each other")
	}
	return r, nil
}

// AddProbe counts a probe of the filter in the state that info tells.
func (r Record) AddProbe(info Info, p Probe) Record {
	first := r.All.N == 0
	grown := info.Items - r.Items
	r.Version, r.All = RecordVersion, r.All.Add(p)
	room := max(r.Began, info.Capacity/10) / 10
	switch since := info.Items - r.Began; {
	case first:
		r.Began, r.Grown, grown = info.Items, 0, info.Items
	case grown < 0: // an older state of the filter was loaded
		r.end()
		r.Before, r.Began, grown = Probe{}, info.Items, 0
	case since > room:
		r.end()
		if since > 3*room { // the window before is of a much emptier filter
			r.Before = Probe{}
		}
		r.Began = info.Items
	}
	r.Info, r.Now, r.Grown = info, r.Now.Add(p), r.Grown+grown
	return r
}

// end ends the window.
func (r *Record) end() {
	r.Ended += r.Now.losses(r.Grown)
	r.Before, r.Now, r.Grown = r.Now, Probe{}, 0
}

// Lately are the probes that describe the filter as it is now.
func (r Record) Lately() Probe {
	if r.Now.N >= r.Before.N {
		return r.Now
	}
	return r.Now.Add(r.Before)
}

// losses are the URLs that were lost as false positives, of so many that were admitted:
// each hit of a random fingerprint is weighted with the URLs that one probe stands for.
func (p Probe) losses(admitted int64) float64 {
	return float64(admitted) / float64(max(p.N, 1)) * float64(p.Hits)
}

// Estimate is how many URLs a crawl can be expected to have lost so far: new
// ones that a filter held for known. Low and High are as far from it, in
// proportion, as the exact 95% interval of the rate of all probes is from that
// rate; without a hit High is what the rate's upper end allows.
type Estimate struct {
	URLs float64 `json:"urls"`
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

func (e Estimate) String() string {
	switch {
	case e.URLs == 0:
		return "below " + count(e.High)
	default:
		return fmt.Sprintf("%s (%s .. %s)", count(e.URLs), count(e.Low), count(e.High))
	}
}

// count writes an expected number for people: two digits, or all of a large one.
func count(f float64) string {
	if f < 100 {
		return short(f)
	}
	return fmt.Sprintf("%.0f", f)
}

// Quality is how well filters do their work, as probing shows.
type Quality struct {
	Probe          // random fingerprints asked lately, and how many were held for known
	All   Probe    `json:"all"` // the same since the first probe
	Rate  float64  `json:"rate"`
	Low   float64  `json:"low"` // the rate's interval
	High  float64  `json:"high"`
	Lost  Estimate `json:"lost"` // URLs expected to be lost so far
	Over  bool     `json:"over"` // a filter errs more often than promised: the lower end of a 99.99% interval exceeds it
}

// doubt is the risk of accusing a filter that is just good enough. It is small
// because probing looks again every second: of many looks at a 95% interval one
// would soon exceed by chance, and so would the first hit of a small rate.
const doubt = 1e-4

// proves says that the rate is above promised, however often one looks.
func (p Probe) proves(promised float64) bool {
	return p.Hits > 0 && quantile(p.Hits-1, p.N, 1-doubt) > promised
}

// QualityOf counts the records of filters that share their URLs evenly, such as all
// of a shard, for a promised rate.
func QualityOf(promised float64, records ...Record) Quality {
	var q Quality
	var loss float64
	var items int64
	for _, r := range records {
		lately := r.Lately()
		q.Probe, q.All = q.Probe.Add(lately), q.All.Add(r.All)
		q.Over = q.Over || lately.proves(promised)
		items += r.Items
		loss += r.Ended + r.Now.losses(r.Grown)
	}
	q.Rate = q.Probe.Rate()
	q.Low, q.High = q.Interval()
	// No filter ever erred more often than now, which bounds the loss too: where
	// few probes were made while it grew, and many since.
	most := float64(items) * q.High
	q.Lost = Estimate{URLs: min(loss, most), High: most}
	if rate := q.All.Rate(); rate > 0 {
		low, high := q.All.Interval()
		q.Lost.Low = min(loss*low/rate, most)
		q.Lost.High = min(loss*high/rate, most)
	}
	return q
}
