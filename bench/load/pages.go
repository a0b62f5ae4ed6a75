package load

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Pages of the size of the web's have a mean of 242 KB and a median of 138 KB: those
// of a crawl of a billion pages in 2025 (andrewkchan.dev/posts/crawler.html).
//
// Documentation has smaller pages. Sized takes larger ones instead, so that the i-th
// smallest page gets the size of the i-th smallest of a log-normal distribution. The
// distribution is wider than the web's, since no page is there for its largest sizes.
const sizedMedian, sizedSigma = 150e3, 1.5

// Sized makes a directory of links to PythonDoc: each page is a real one of its own
// directory, so that its links lead to pages. It returns mean and median of their sizes.
func Sized(dir string) (mean, median float64, err error) {
	type page struct {
		name string // below PythonDoc
		size float64
	}
	var pages []page
	err = filepath.WalkDir(PythonDoc, func(name string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(PythonDoc, name)
		switch {
		case err != nil:
		case entry.IsDir():
			err = os.MkdirAll(filepath.Join(dir, inner), 0o700)
		case strings.HasSuffix(name, ".html"):
			var info os.FileInfo
			if info, err = os.Stat(name); err == nil {
				pages = append(pages, page{inner, float64(info.Size())})
			}
		default:
			err = os.Symlink(name, filepath.Join(dir, inner))
		}
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("load: pages of the web's size: %w (scripts/setup installs them)", err)
	}
	slices.SortFunc(pages, func(a, b page) int { return int(a.size - b.size) })
	var sizes []float64
	for i, p := range pages {
		want := math.Log(sizedMedian) + sizedSigma*math.Sqrt2*math.Erfinv(2*(float64(i)+0.5)/float64(len(pages))-1)
		off := func(o page) float64 { return math.Abs(math.Log(o.size) - want) }
		best := p
		for _, o := range pages {
			if filepath.Dir(o.name) == filepath.Dir(p.name) && off(o) < off(best) {
				best = o
			}
		}
		if err := os.Symlink(filepath.Join(PythonDoc, best.name), filepath.Join(dir, p.name)); err != nil {
			return 0, 0, fmt.Errorf("load: %w", err)
		}
		sizes = append(sizes, best.size)
		mean += best.size / float64(len(pages))
	}
	return mean, Median(sizes), nil
}
