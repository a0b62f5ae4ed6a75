package sinktest

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// VictimEnv is the variable that makes a test binary write records to the output that it
// names, and print the URL of each that is in the sink, until it is killed.
const VictimEnv = "SEINE_TEST_VICTIM"

// KillWriters runs this binary as a victim on an output once for each of counts, and kills
// it (-9) after that many acknowledged records. It returns their URLs.
func KillWriters(t *testing.T, output string, counts ...int) map[string]bool {
	t.Helper()
	acknowledged := map[string]bool{}
	for _, count := range counts {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), VictimEnv+"="+output)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		for n := 0; ; n++ {
			line, err := lines.ReadString('\n')
			if err != nil {
				break // the victim did not get to the end of its last line
			}
			acknowledged[strings.TrimSpace(line)] = true
			if n == count {
				_ = cmd.Process.Kill()
			}
		}
		_ = cmd.Wait()
	}
	return acknowledged
}
