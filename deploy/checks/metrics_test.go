package checks

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const grafanaDir = "../grafana"

var (
	registration = regexp.MustCompile(`register(?:_with_unit)?\(\s*"(\w+)",\s*"[^"]*",\s*(?:(?:Unit::)?(\w+)(?:\(\))?,\s*)?(?:m|inner)\.(\w+)`)
	family       = regexp.MustCompile(`(\w+): (?:Family<\w+, )?(Counter|Gauge|Histogram|DelayFamily)\b`)
	metricName   = regexp.MustCompile(`\btailrace_\w+`)
)

// registered gives the names under which the agent exposes its metrics, read from its sources.
func registered(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("../../crates", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".rs" {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		names = append(names, exposed(string(source))...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(names) < 30 {
		t.Fatalf("only %d metrics found: does `registration` still fit the sources?", len(names))
	}
	return names
}

// exposed names the metrics that one source registers, with the suffixes of their unit and type.
func exposed(source string) []string {
	types := map[string]string{}
	for _, match := range family.FindAllStringSubmatch(source, -1) {
		if types[match[1]] == "" {
			types[match[1]] = match[2]
		}
	}
	var names []string
	for _, match := range registration.FindAllStringSubmatch(source, -1) {
		name := "tailrace_" + match[1]
		if match[2] != "" {
			name += "_" + strings.ToLower(match[2])
		}
		switch types[match[3]] {
		case "Counter":
			names = append(names, name+"_total")
		case "Gauge":
			names = append(names, name)
		case "Histogram", "DelayFamily":
			names = append(names, name+"_bucket", name+"_sum", name+"_count")
		}
	}
	return names
}

func TestMetricsOfAlertsAndDashboardExist(t *testing.T) {
	known := registered(t)
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "tailrace.json"} {
		used := metricName.FindAllString(read(t, grafanaDir+"/"+file), -1)
		if len(used) < 5 {
			t.Errorf("%s uses only %q", file, used)
		}
		for _, name := range used {
			if !slices.Contains(known, name) {
				t.Errorf("%s: the agent has no metric %s", file, name)
			}
		}
	}
}

func TestNamesAreReadFromSources(t *testing.T) {
	source := `struct M { a: Family<L, Counter>, b: Gauge, c: Gauge<f64, AtomicU64>, d: DelayFamily }
		r.register("x_a", "text", m.a); r.register_with_unit("x_b", "text", bytes(), m.b);
		r.register("x_c", "text, with a comma", inner.c.clone());
		r.register_with_unit(
			"x_d", "text",
			Unit::Seconds, m.d.0);`
	want := []string{"tailrace_x_a_total", "tailrace_x_b_bytes", "tailrace_x_c", "tailrace_x_d_seconds_bucket",
		"tailrace_x_d_seconds_sum", "tailrace_x_d_seconds_count"}
	if names := exposed(source); !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}
}

// What the agent counts as lost, refused or stopped is watched: by an alert and in a panel.
func TestEveryLossIsWatched(t *testing.T) {
	loss := regexp.MustCompile(`_(lost|truncated_unread|dropped|dead_lettered|rejected|crashed|odd_responses)_|_(denied_paths|stalled|holding|safe_mode)$`)
	counted := 0
	for _, name := range registered(t) {
		if !loss.MatchString(strings.TrimSuffix(name, "_total")+"_") && !loss.MatchString(name) {
			continue
		}
		counted++
		whole := regexp.MustCompile(name + `\b`)
		for _, file := range []string{"alerts.yaml", "tailrace.json"} {
			if !whole.MatchString(read(t, grafanaDir+"/"+file)) {
				t.Errorf("%s does not watch %s", file, name)
			}
		}
	}
	if counted < 12 {
		t.Errorf("only %d metrics of loss are registered", counted)
	}
}

// Each alert is tried, and says what to do.
func TestEveryAlertIsTried(t *testing.T) {
	tried := read(t, grafanaDir+"/alerts_test.yaml")
	rules := read(t, grafanaDir+"/alerts.yaml")
	alerts := regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(rules, -1)
	for _, alert := range alerts {
		if !strings.Contains(tried, "alertname: "+alert[1]+"\n") {
			t.Errorf("alerts_test.yaml does not try %s", alert[1])
		}
	}
	if described := strings.Count(rules, "description:"); described != len(alerts) {
		t.Errorf("%d alerts, %d descriptions", len(alerts), described)
	}
}

// A panel without data source, or beside another one, is seen only in Grafana.
func TestTheDashboardIsSound(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			ID         int
			Type       string
			Title      string
			GridPos    struct{ X, Y, W, H int }
			Datasource struct{ UID string }
			Targets    []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(read(t, grafanaDir+"/tailrace.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	taken, ids := map[[2]int]string{}, map[int]bool{}
	for _, panel := range dashboard.Panels {
		if ids[panel.ID] {
			t.Errorf("%s: its id is taken", panel.Title)
		}
		ids[panel.ID] = true
		if panel.Type != "row" && (panel.Datasource.UID != "${datasource}" || len(panel.Targets) == 0) {
			t.Errorf("%s: no query or not of ${datasource}", panel.Title)
		}
		for _, target := range panel.Targets {
			if !strings.Contains(target.Expr, `instance=~"$instance"`) {
				t.Errorf("%s: %s shows other instances than those chosen", panel.Title, target.Expr)
			}
		}
		place := panel.GridPos
		if place.X+place.W > 24 {
			t.Errorf("%s: outside", panel.Title)
		}
		for x := place.X; x < place.X+place.W; x++ {
			for y := place.Y; y < place.Y+place.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					t.Fatalf("%s lies on %s", panel.Title, other)
				}
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}
