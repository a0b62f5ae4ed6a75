// Package results is what was measured, for programs that plan with it.
package results

import _ "embed"

// Units is the output of the Go benchmarks beside the code: what each part of a
// crawl costs on the machine that it names.
//
//go:embed units.txt
var Units string
