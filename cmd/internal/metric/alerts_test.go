package metric_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"seine/cmd/internal/metric"
)

const deploy = "../../../deploy"

// The alert rules do what they say, by promtool: each fires, and does not.
func TestAlertRules(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("promtool is missing; scripts/setup installs it")
		}
		t.Skip("promtool is missing; scripts/setup installs it")
	}
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		cmd := exec.Command(promtool, args...)
		cmd.Dir = deploy
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// rule is one alert.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// Every alert is of one crawl, has a severity, a summary, a line in deploy/README.md and
// tests that show it firing and not firing, and reads metrics that there are.
func TestAlertsAreWhole(t *testing.T) {
	readme := read(t, filepath.Join(deploy, "README.md"))
	tests := read(t, filepath.Join(deploy, "alerts_test.yaml"))
	var file struct {
		Groups []struct{ Rules []rule }
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(deploy, "alerts.yaml"))), &file); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			if !slices.Contains([]string{"warning", "critical"}, r.Labels["severity"]) {
				t.Errorf("%s has severity %q", r.Alert, r.Labels["severity"])
			}
			if !strings.HasPrefix(r.Annotations["summary"], "{{ $labels.crawl }}: ") {
				t.Errorf("%s does not begin with its crawl: %q", r.Alert, r.Annotations["summary"])
			}
			if r.Annotations["runbook_url"] != "https://example.com/seine/deploy/README.md#"+strings.ToLower(r.Alert) || !strings.Contains(readme, "\n### "+r.Alert+"\n") {
				t.Errorf("%s has no line in deploy/README.md: %q", r.Alert, r.Annotations["runbook_url"])
			}
			if !strings.Contains(tests, "alertname: "+r.Alert+"\n") || !strings.Contains(tests, "{alertname: "+r.Alert+", eval_time: ") {
				t.Errorf("%s has no test of firing and not firing", r.Alert)
			}
			if !strings.Contains(r.Expr, "up{job") { // Prometheus' own
				checkNames(t, r.Alert, r.Expr)
			}
		}
	}
	if listed := strings.Count(readme, "\n### Seine"); listed != n {
		t.Errorf("%d alerts, deploy/README.md has %d", n, listed)
	}
}

// The dashboards read metrics that there are.
func TestDashboardNames(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(deploy, "grafana", "dashboards", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	for _, file := range files {
		for _, m := range regexp.MustCompile(`"expr":"((?:[^"\\]|\\.)*)"`).FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(m[1], "process_") {
				checkNames(t, filepath.Base(file), m[1])
			}
		}
	}
}

// checkNames checks that a query reads metrics that there are, with labels that
// they have.
func checkNames(t *testing.T, who, query string) {
	t.Helper()
	found := regexp.MustCompile(`seine_[a-z0-9_]+`).FindAllString(query, -1)
	if len(found) == 0 {
		t.Errorf("%s reads no metric", who)
	}
	for _, name := range found {
		if !slices.ContainsFunc(metric.Table, func(r metric.Row) bool {
			return r.Name == name || r.Type == "histogram" && slices.Contains([]string{r.Name + "_bucket", r.Name + "_sum", r.Name + "_count"}, name)
		}) {
			t.Errorf("%s reads %s, which there is not", who, name)
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
