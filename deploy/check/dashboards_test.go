package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"go.yaml.in/yaml/v4"
)

// The dashboards are written from the tables in panels_test.go:
//
//	go -C deploy/check test -run TestDashboards -write
//
// writes deploy/grafana/dashboards; without -write the test holds the files to them.
var write = flag.Bool("write", false, "write the dashboards")

const dashboards = "../grafana/dashboards"

// board is one dashboard.
type board struct {
	name   string // of its file, and in its address
	title  string
	shards bool // it can show some shards only
	panels []panel
}

// panel is one panel of a dashboard.
type panel struct {
	title   string
	unit    string // as Grafana names it
	stat    bool   // one number; else lines over time
	limits  []float64
	low     bool     // what is below the limit is wrong; else what is above
	alerts  []string // whose lines of deploy/README.md it shows
	targets []target
}

// target is one query and the name of what it answers. In it {$c stands for the
// crawl that is chosen and {$s for its shards that are; $r is the span of a rate.
type target struct{ legend, query string }

var short = strings.NewReplacer(`{$c`, `{crawl="$crawl"`, `{$s`, `{crawl="$crawl",shard=~"$shard"`, `$r]`, `$__rate_interval]`)

// object is an object of JSON, written by its keys in order.
type object = map[string]any

// runbook is the panel of the overview that has all lines of deploy/README.md on alerts.
const runbook = 100

// render is the JSON of a dashboard, a line for each panel.
func (b *board) render(t *testing.T, lines map[string]string) []byte {
	t.Helper()
	source := object{"type": "prometheus", "uid": "${datasource}"}
	var panels []object
	x, y, tall := 0, 0, 0
	for i, p := range b.panels {
		wide, high := 8, 8
		if p.stat {
			wide, high = 4, 4
		}
		if x+wide > 24 || i > 0 && p.stat != b.panels[i-1].stat {
			x, y = 0, y+tall
		}
		panels = append(panels, p.render(i+1, object{"x": x, "y": y, "w": wide, "h": high}, source, lines))
		x, tall = x+wide, high
	}
	if b.name == "overview" {
		var text strings.Builder
		for _, r := range rules(t) {
			fmt.Fprintf(&text, "#### %s\n\n%s\n\n", r.Alert, lines[r.Alert])
		}
		panels = append(panels, object{"id": runbook, "type": "text", "title": "Runbook", "gridPos": object{"x": 0, "y": y + tall, "w": 24, "h": 16},
			"options": object{"mode": "markdown", "content": strings.TrimSpace(text.String())}})
	}
	variables := []object{{"name": "datasource", "type": "datasource", "query": "prometheus"}, variable("crawl", "label_values(seine_build_info, crawl)", source)}
	if b.shards {
		shard := variable("shard", `label_values(seine_frontier_queued_urls{crawl="$crawl"}, shard)`, source)
		shard["multi"], shard["includeAll"], shard["allValue"], shard["sort"] = true, true, ".*", 3
		shard["current"] = object{"text": "All", "value": "$__all"}
		variables = append(variables, shard)
	}
	head := object{
		"uid": "seine-" + b.name, "title": b.title, "tags": []string{"seine"}, "schemaVersion": 39, "editable": true, "refresh": "10s",
		"time": object{"from": "now-1h", "to": "now"}, "templating": object{"list": variables},
		"links": []object{link("dashboards", "Seine", "", "seine")}, "annotations": object{"list": []object{}},
	}
	out := bytes.NewBufferString("{\n")
	for _, key := range []string{"uid", "title", "tags", "schemaVersion", "editable", "refresh", "time", "links", "annotations", "templating"} {
		fmt.Fprintf(out, "%q: %s,\n", key, line(t, head[key]))
	}
	out.WriteString("\"panels\": [\n")
	for i, p := range panels {
		out.WriteString(line(t, p))
		if i < len(panels)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n}\n")
	return out.Bytes()
}

// variable is one that has the values of a label.
func variable(name, query string, source object) object {
	return object{"name": name, "type": "query", "datasource": source, "query": query, "refresh": 2, "sort": 1}
}

// link leads to an address, or to the dashboards that have tags.
func link(kind, title, url string, tags ...string) object {
	return object{"type": kind, "title": title, "url": url, "tags": append([]string{}, tags...), "icon": "external link", "tooltip": "",
		"includeVars": true, "keepTime": true, "asDropdown": false, "targetBlank": false}
}

func (p *panel) render(id int, at, source object, lines map[string]string) object {
	defaults := object{"unit": p.unit}
	if len(p.limits) > 0 {
		colors := []string{"green", "red"}
		switch {
		case p.low:
			colors = []string{"red", "green"}
		case len(p.limits) == 2:
			colors = []string{"green", "orange", "red"}
		}
		steps := []object{{"color": colors[0], "value": nil}}
		for i, limit := range p.limits {
			steps = append(steps, object{"color": colors[i+1], "value": limit})
		}
		defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
		if !p.stat {
			defaults["custom"] = object{"thresholdsStyle": object{"mode": "dashed"}}
		}
	}
	o := object{"id": id, "type": "timeseries", "title": p.title, "gridPos": at, "datasource": source, "fieldConfig": object{"defaults": defaults, "overrides": []object{}}}
	if p.stat {
		o["type"] = "stat"
	}
	var targets []object
	for i, q := range p.targets {
		targets = append(targets, object{"datasource": source, "refId": string(rune('A' + i)), "expr": short.Replace(q.query), "legendFormat": q.legend})
	}
	o["targets"] = targets
	var about []string
	for _, alert := range p.alerts {
		about = append(about, "**"+alert+"**: "+lines[alert])
	}
	if len(about) > 0 {
		o["description"] = strings.Join(about, "\n\n")
		o["links"] = []object{link("link", "Runbook", fmt.Sprintf("/d/seine-overview?viewPanel=%d", runbook))}
	}
	return o
}

func line(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// rule is one alert.
type rule struct{ Alert, Expr string }

// rules are the alerts.
func rules(t *testing.T) (all []rule) {
	t.Helper()
	text, err := os.ReadFile("../alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// runbookLines are the lines of deploy/README.md by alert.
func runbookLines(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^### (Seine\w+)\n\n(.+)\n`).FindAllStringSubmatch(string(text), -1) {
		lines[m[1]] = m[2]
	}
	return lines
}

// The dashboards are those of the tables, and JSON that Grafana's own types take
// strictly. Each alert stands on some panel; limits are those of the alerts that stand
// there; units are those of what is asked for.
func TestDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	lines, exprs, shown := runbookLines(t), map[string]string{}, map[string]bool{}
	for _, r := range rules(t) {
		exprs[r.Alert] = r.Expr
	}
	for _, b := range boards {
		name := filepath.Join(dashboards, b.name+".json")
		want := b.render(t, lines)
		if *write {
			if err := os.WriteFile(name, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the tables say: go -C deploy/check test -run TestDashboards -write", name)
		}
		if fault := strictly(got); fault != "" {
			t.Errorf("%s: %s", name, fault)
		}
		if strictly(bytes.Replace(got, []byte(`"legendFormat"`), []byte(`"legend"`), 1)) == "" {
			t.Errorf("%s: a key that no panel has is taken", name)
		}
		for _, p := range b.panels {
			for _, alert := range p.alerts {
				shown[alert] = true
				if lines[alert] == "" || exprs[alert] == "" {
					t.Errorf("%s, %s: there is no alert %s", b.name, p.title, alert)
				}
			}
			p.check(t, b.name, exprs)
		}
	}
	for alert := range exprs {
		if !shown[alert] {
			t.Errorf("%s stands on no panel", alert)
		}
	}
	files, err := filepath.Glob(filepath.Join(dashboards, "*.json"))
	if err != nil || len(files) != len(boards) {
		t.Errorf("%v: files %v, %d dashboards", err, files, len(boards))
	}
}

// strictly is what Grafana's types have against a dashboard, "" = nothing.
func strictly(text []byte) (fault string) {
	var strict dashboard.Dashboard
	if err := strict.UnmarshalJSONStrict(text); err != nil {
		return err.Error() // of a list of faults, which may be empty
	}
	return ""
}

// check holds limits to alerts, and units to names and functions of queries.
func (p *panel) check(t *testing.T, where string, exprs map[string]string) {
	t.Helper()
	for _, limit := range p.limits {
		text := regexp.MustCompile(`[ =]` + regexp.QuoteMeta(strconv.FormatFloat(limit, 'f', -1, 64)) + `\b`)
		if !slices.ContainsFunc(p.alerts, func(a string) bool { return text.MatchString(exprs[a]) }) && len(p.alerts) > 0 {
			t.Errorf("%s, %s: none of its alerts has the limit %v", where, p.title, limit)
		}
	}
	for _, q := range p.targets {
		rate := strings.Contains(q.query, "rate(")
		bytes, seconds := strings.Contains(q.query, "_bytes"), strings.Contains(q.query, "_seconds")
		want := []string{"short"}
		switch {
		case strings.Contains(q.query, " / "):
			want = []string{"percentunit"}
		case rate && strings.Contains(q.query, "cpu_seconds_total"):
			want = []string{"percentunit"} // of one processor
		case rate && bytes:
			want = []string{"Bps"}
		case bytes:
			want = []string{"bytes"}
		case seconds:
			want = []string{"s"}
		case rate:
			want = []string{"reqps", "ops"}
		case strings.Contains(q.query, "positive_rate"):
			want = []string{"sci"}
		}
		if !slices.Contains(want, p.unit) {
			t.Errorf("%s, %s: %s has the unit %s, not %v", where, p.title, q.query, p.unit, want)
		}
		if rate && !regexp.MustCompile(`rate\(seine_\w+_(total|bucket)\{|rate\(process_cpu_seconds_total\{`).MatchString(q.query) {
			t.Errorf("%s, %s: %s is a rate of what is no counter", where, p.title, q.query)
		}
		if n := len(regexp.MustCompile(`(seine|process)_\w+|ALERTS`).FindAllString(q.query, -1)); n == 0 || n != strings.Count(q.query, "{$") {
			t.Errorf("%s, %s: %s is not of one crawl", where, p.title, q.query)
		}
	}
}

// Every query is one that Prometheus takes.
func TestQueries(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is missing; scripts/setup installs it")
		}
		t.Skip("SKIPPED, needs promtool; scripts/setup installs it")
	}
	var list []object
	for _, b := range boards {
		for _, p := range b.panels {
			for _, q := range p.targets {
				list = append(list, object{"record": fmt.Sprintf("q:%s:%d", b.name, len(list)), "expr": filled(q.query, "c")})
			}
		}
	}
	file := filepath.Join(t.TempDir(), "rules.yaml") // JSON is YAML
	if err := os.WriteFile(file, []byte(line(t, object{"groups": []object{{"name": "dashboards", "rules": list}}})), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// filled is a query of a dashboard as Grafana sends it.
func filled(q, crawl string) string {
	return strings.NewReplacer("$crawl", crawl, "$shard", ".*", "$__rate_interval", "15s").Replace(short.Replace(q))
}
