// Package checks holds what no schema checks of the deployment. Takes deploy/ and the agent's sources, gives faults.
// Never changes a file, unless TAILRACE_BLESS=1 asks it to write what is generated anew.
package checks

import (
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

const (
	chartDir     = "../helm/tailrace"
	valuesDir    = chartDir + "/ci"
	goldenDir    = "../helm/golden"
	blessCommand = "TAILRACE_BLESS=1 cargo xtask test --deploy"
)

// namespace that the renders are for.
const namespace = "logging"

// kubeVersion is the cluster that the renders are for.
const kubeVersion = "v1.33.0"

// rendered is what one set of values makes of the chart.
type rendered struct {
	// manifests in the order of their files' names.
	manifests string
	// files holds the same by template, without its directories.
	files map[string]string
	// notes that helm prints after an installation.
	notes string
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// render gives what helm would send, or why it refuses.
func render(loaded *chart.Chart, values map[string]any, namespace, version string) (rendered, error) {
	return renderAs(loaded, values, "tailrace", namespace, version)
}

// renderAs does so for a release of another name.
func renderAs(loaded *chart.Chart, values map[string]any, name, namespace, version string) (rendered, error) {
	return renderWith(loaded, values, name, namespace, version, false)
}

// renderWith does so for values that were checked by the schema before.
func renderWith(loaded *chart.Chart, values map[string]any, name, namespace, version string, isChecked bool) (rendered, error) {
	release := chartutil.ReleaseOptions{Name: name, Namespace: namespace, Revision: 1, IsInstall: true}
	capabilities := chartutil.DefaultCapabilities.Copy()
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return rendered{}, err
	}
	capabilities.KubeVersion = *parsed
	all, err := chartutil.ToRenderValuesWithSchemaValidation(loaded, values, release, capabilities, isChecked)
	if err != nil {
		return rendered{}, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return rendered{}, err
	}
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	result := rendered{files: map[string]string{}}
	for _, name := range names {
		text := strings.TrimSpace(files[name])
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			result.notes = text
		case strings.HasSuffix(name, ".yaml") && text != "":
			text = strings.TrimPrefix(text, "---\n") + "\n"
			result.files[strings.TrimPrefix(name, "tailrace/templates/")] = text
			result.manifests += "---\n# " + name + "\n" + text
		}
	}
	return result, nil
}

func parseValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values, err := chartutil.ReadValues([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// valueSets gives the files of values by name.
func valueSets(t *testing.T) map[string]map[string]any {
	t.Helper()
	paths, err := filepath.Glob(valuesDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) < 20 {
		t.Fatalf("%d sets of values in %s, at least 20", len(paths), valuesDir)
	}
	sets := map[string]map[string]any{}
	for _, path := range paths {
		sets[strings.TrimSuffix(filepath.Base(path), ".yaml")] = parseValues(t, read(t, path))
	}
	return sets
}

// renderAll renders every set of values.
func renderAll(t *testing.T) map[string]rendered {
	t.Helper()
	loaded := loadChart(t)
	all := map[string]rendered{}
	for name, values := range valueSets(t) {
		one, err := render(loaded, values, namespace, kubeVersion)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		all[name] = one
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same compares a generated file with what it should be; with TAILRACE_BLESS=1 it writes it.
func same(t *testing.T, path, want string) {
	t.Helper()
	have, err := os.ReadFile(path)
	if err == nil && string(have) == want {
		return
	}
	if os.Getenv("TAILRACE_BLESS") == "1" {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s is not what it should be%s\nif it may change: %s", path, firstDifference(string(have), want), blessCommand)
}

func firstDifference(have, want string) string {
	haves, wants := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i := range max(len(haves), len(wants)) {
		line := func(lines []string) string {
			if i < len(lines) {
				return lines[i]
			}
			return "(end)"
		}
		if line(haves) != line(wants) {
			return ", from line " + strconv.Itoa(i+1) + ":\n- " + line(haves) + "\n+ " + line(wants)
		}
	}
	return ""
}
