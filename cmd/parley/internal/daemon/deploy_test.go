package daemon_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

const (
	metricsPage = "../../../../.github/METRICS.md"
	deployed    = "../../deploy"
)

// families returns the rows of the page of metrics for all families of the daemon, by name. The daemon has
// answered a message, so every histogram has a value.
func families(t *testing.T, h *harness) map[string]string {
	t.Helper()
	kinds := map[string]string{}
	for _, kind := range regexp.MustCompile(`(?m)^# TYPE (\w+) (\w+)$`).FindAllStringSubmatch(h.get("/metrics").body, -1) {
		kinds[kind[1]] = kind[2]
	}
	desc := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)".* constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	rows := map[string]string{}
	for _, text := range h.daemon.Described() {
		found := desc.FindStringSubmatch(text)
		if found == nil {
			t.Fatalf("the description %s", text)
		}
		name, help := found[1], found[2]
		var labels []string
		for _, label := range regexp.MustCompile(`[a-z_]+(=|,|$)`).FindAllString(found[3]+","+found[4], -1) {
			labels = append(labels, strings.TrimRight(label, "=,"))
		}
		slices.Sort(labels)
		kind := kinds[name]
		switch {
		case kind == "" && strings.HasSuffix(name, "_total"):
			kind = "counter"
		case kind == "":
			kind = "gauge"
		}
		rows[name] = fmt.Sprintf("| `%s` | %s | %s | %s |\n", name, kind, strings.Join(labels, ", "), help)
	}
	return rows
}

// named returns the metrics that a text names, without the endings of histograms.
func named(text string, known map[string]string) (names []string) {
	for _, name := range regexp.MustCompile(`\b(parley|process|go)_[a-z_]+\b`).FindAllString(text, -1) {
		for _, end := range []string{"_bucket", "_count", "_sum"} {
			if base, ok := strings.CutSuffix(name, end); ok && known[base] != "" {
				name = base
			}
		}
		names = append(names, name)
	}
	return names
}

// expressions returns the values of all keys expr and query in a JSON document.
func expressions(value any) (texts []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, v := range value {
			if text, ok := v.(string); ok && (key == "expr" || key == "query") {
				texts = append(texts, text)
			}
			texts = append(texts, expressions(v)...)
		}
	case []any:
		for _, v := range value {
			texts = append(texts, expressions(v)...)
		}
	}
	return texts
}

// TestDeployedMetrics compares the page of metrics, the dashboard and the alerts with the daemon's registry. With
// -update it writes the table of the page.
func TestDeployedMetrics(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	h.mention("hello")
	h.answerNext(replyWith("Hello."))
	h.awaitMetric(sent, 1)
	rows := families(t, h)
	var want strings.Builder
	ours := 0
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		if strings.HasPrefix(name, "parley_") {
			want.WriteString(rows[name])
			ours++
		}
	}
	if ours > 40 {
		t.Errorf("%d families: the budget is 40", ours)
	}
	page := read(t, metricsPage)
	const head = "|---|---|---|---|\n"
	before, table, ok := strings.Cut(page, head)
	if !ok {
		t.Fatal("the page has no table")
	}
	if *update {
		write(t, metricsPage, before+head+want.String())
	} else {
		same(t, table, want.String())
	}
	var dashboard map[string]any
	if err := json.Unmarshal([]byte(read(t, filepath.Join(deployed, "grafana/parley.json"))), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard["panels"].([]any) {
		for _, expression := range expressions(panel) {
			for _, use := range regexp.MustCompile(`\b((?:parley|process|go)_[a-z_]+)\b(\{[^}]*\})?`).FindAllStringSubmatch(expression, -1) {
				chosen := []string{`job="$job"`}
				for _, label := range []string{"workspace", "agent"} {
					if slices.Contains(strings.Split(strings.Split(rows[named(use[1], rows)[0]], " | ")[2], ", "), label) {
						chosen = append(chosen, fmt.Sprintf(`%s=~"$%[1]s"`, label))
					}
				}
				for _, matcher := range chosen {
					if !strings.Contains(use[2], matcher) {
						t.Errorf("the dashboard's expression %s asks %s without %s", expression, use[1], matcher)
					}
				}
			}
		}
	}
	rules := read(t, filepath.Join(deployed, "prometheus/rules.yaml"))
	for place, text := range map[string]string{"the dashboard": strings.Join(expressions(dashboard), "\n"), "the alerts": rules} {
		used := named(text, rows)
		for _, name := range used {
			if rows[name] == "" {
				t.Errorf("%s name %s, which the daemon has not", place, name)
			}
		}
		if len(used) < 10 {
			t.Errorf("%s name only %q", place, used)
		}
	}
}

// TestAlerts runs promtool, if it is installed.
func TestAlerts(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; Debian has it in the package prometheus")
	}
	for command, file := range map[string]string{"check": "rules.yaml", "test": "rules_test.yaml"} {
		if out, err := exec.CommandContext(t.Context(), promtool, command, "rules", filepath.Join(deployed, "prometheus", file)).CombinedOutput(); err != nil {
			t.Errorf("promtool %s rules: %v\n%s", command, err, out)
		}
	}
	tests := read(t, filepath.Join(deployed, "prometheus/rules_test.yaml"))
	for _, alert := range regexp.MustCompile(`(?m)- alert: (\w+)$`).FindAllStringSubmatch(read(t, filepath.Join(deployed, "prometheus/rules.yaml")), -1) {
		if !strings.Contains(tests, "alertname: "+alert[1]+"\n        exp_alerts:") {
			t.Errorf("no test lets %s fire", alert[1])
		}
	}
}

// read returns the content of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
