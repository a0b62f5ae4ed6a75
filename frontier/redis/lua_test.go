package redis

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"seine/frontier"
)

// scripts reads every script that runs on a shard, by its file.
func scripts(t *testing.T) map[string]string {
	list := make(map[string]string)
	for _, dir := range []string{"lua", "../audit/lua", "../../shard"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.lua"))
		if err != nil || len(files) == 0 {
			t.Fatal(dir, files, err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			list[file] = string(b)
		}
	}
	return list
}

// TestHeaders holds the fixed form of the scripts' headers: purpose, KEYS,
// ARGV, Reply, Cost, Repeat, in this order, in a file of 150 lines at most.
func TestHeaders(t *testing.T) {
	t.Parallel()
	for file, text := range scripts(t) {
		t.Run(file, func(t *testing.T) {
			for _, fault := range headerFaults(strings.TrimSuffix(filepath.Base(file), ".lua"), text) {
				t.Error(fault)
			}
		})
	}
}

var headerField = regexp.MustCompile(`^-- (KEYS\[[0-9.,]+\]|ARGV\[[0-9a-z+.]+\]|Reply|Cost|Repeat)  *[^ ]`)

// headerFaults lists what is wrong with a script's header.
func headerFaults(name, text string) (faults []string) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 150 {
		faults = append(faults, "more than 150 lines")
	}
	if strings.HasPrefix(lines[0], "#!lua") {
		lines = lines[1:]
	}
	if !strings.HasPrefix(lines[0], "-- "+name+": ") {
		faults = append(faults, "does not start with its name and purpose")
	}
	order := []string{"KEYS", "ARGV", "Reply", "Cost", "Repeat"}
	at := -1
	for _, line := range lines {
		if !strings.HasPrefix(line, "--") {
			break
		}
		m := headerField.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		field, _, _ := strings.Cut(m[1], "[")
		switch {
		case at+1 < len(order) && field == order[at+1]:
			at++
		case at >= 0 && field == order[at] && at < 2: // more KEYS, more ARGV
		default:
			faults = append(faults, field+" is out of order")
		}
	}
	if at != len(order)-1 {
		faults = append(faults, "the header lacks a field after "+strings.Join(order[:at+1], ", "))
	}
	return faults
}

func TestHeaderFaults(t *testing.T) {
	t.Parallel()
	good := "-- x: does.\n-- KEYS[1]  k\n-- KEYS[2..] l\n-- ARGV[1] a\n-- Reply   r\n-- Cost    O(1)\n-- Repeat  none\nreturn 1\n"
	if f := headerFaults("x", good); f != nil {
		t.Fatal(f)
	}
	for _, bad := range []string{
		strings.Replace(good, "-- x: does.", "-- does.", 1),
		strings.Replace(good, "-- Cost    O(1)\n", "", 1),
		strings.Replace(good, "-- Repeat  none\n", "", 1),
		strings.Replace(good, "-- ARGV[1] a\n", "", 1),
		good + strings.Repeat("\n", 150),
	} {
		if headerFaults("x", bad) == nil {
			t.Errorf("no fault in %q", bad)
		}
	}
}

// TestScriptsDeclareTheirKeys: a script names keys by KEYS only, so that none
// can touch one that was not declared.
func TestScriptsDeclareTheirKeys(t *testing.T) {
	t.Parallel()
	call := regexp.MustCompile(`p?call\((?:'[A-Z.]+'|push), *([^,)]+)`)
	// Names in capitals are those of KEYS; the others hold a KEYS; 'memory' is of INFO.
	good := regexp.MustCompile(`^(KEYS\[|unpack\(KEYS|[A-Z]+$|(list|key|visit|site_key)$|'memory'$|'USAGE'$)`)
	seen := 0
	for file, text := range scripts(t) {
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			seen++
			if key := m[1]; !good.MatchString(key) {
				t.Errorf("%s: %s: the key is no KEYS", file, m[0])
			}
		}
	}
	if seen < 60 {
		t.Errorf("found %d calls only", seen)
	}
}

// Every command of a script is tried when a crawl is opened.
func TestCommandsAreTried(t *testing.T) {
	t.Parallel()
	tried := text("rights") + "may('INFO' may('MEMORY'" // weigh and weigh_list do without
	command := regexp.MustCompile(`p?call\('([A-Z.]+)'`)
	found := 0
	for file, text := range scripts(t) {
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			if found++; !strings.Contains(tried, "may('"+m[1]+"'") {
				t.Errorf("%s runs %s, which rights.lua does not try", file, m[1])
			}
		}
	}
	if found < 50 {
		t.Errorf("%d commands in all scripts", found)
	}
}

// TestSlowlogTells: who reads SLOWLOG sees which script ran, on which shard of which
// crawl, and, where few keys leave room for it, what was asked.
func TestSlowlogTells(t *testing.T) {
	t.Parallel()
	s := one(t)
	s.do("CONFIG", "SET", "slowlog-log-slower-than", 0)
	s.admit(candidate("a.example", 1))
	s.tick(frontier.TickRequest{Want: 7})
	log := fmt.Sprint(s.do("SLOWLOG", "GET", 50))
	for _, want := range []string{s.keys[0].Never("admit"), s.keys[0].Queue("a.example", 2), "RPUSH", "/page/1", s.keys[0].Never("tick")} {
		if !strings.Contains(log, want) {
			t.Errorf("SLOWLOG does not tell of %s: %s", want, log)
		}
	}
}
