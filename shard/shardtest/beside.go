package shardtest

import (
	"flag"
	"strconv"
)

// SideBySide lets n tests of a package that call t.Parallel run at once, unless
// -parallel says otherwise. It is for a TestMain whose tests wait for servers, delays
// and leases most of their time, so that n may be more than processors.
func SideBySide(n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return
	}
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // n is a constant of a test
	}
}
