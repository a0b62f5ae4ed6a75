//go:build race

package simulate

// racing says that the race detector runs, which has the scheduler throw dice.
const racing = true
