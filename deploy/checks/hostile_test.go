package checks

import (
	"io"
	"log"
	"maps"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

// hostile are values of every kind, each of which is wrong at most places.
var hostile = []any{
	nil, 7.0, true, "", "x", "a b: #\n- c", []any{}, []any{7.0}, []any{"x"}, []any{map[string]any{}}, map[string]any{}, map[string]any{"a": 7.0},
}

// Whatever a value is, helm renders it, or says in the chart's or the schema's words what is wrong: never in those of Go.
func TestNoValueBreaksATemplate(t *testing.T) {
	loaded := loadChart(t)
	schema := compiled(t, chartDir+"/values.schema.json")
	defaults := parseValues(t, read(t, chartDir+"/values.yaml"))
	log.SetOutput(io.Discard) // Helm warns of what is no table.
	defer log.SetOutput(os.Stderr)
	for _, path := range paths("", defaults) {
		for _, value := range hostile {
			values := parseValues(t, endpointValue)
			put(values, path, value)
			one, err := try(loaded, schema, values)
			if err != nil {
				if fault := wordsFault(err.Error()); fault != "" {
					t.Errorf("%s: %v: %s: %v", path, value, fault, err)
				}
				last := path[strings.LastIndex(path, ".")+1:]
				if value == nil && !strings.Contains(err.Error(), last) {
					t.Errorf("%s: null is refused without naming it: %v", path, err)
				}
				continue
			}
			if path == "extraObjects" {
				continue // Any text may be there.
			}
			if fault := textFault(one); fault != "" {
				t.Errorf("%s: %v: %s in\n%s", path, value, fault, one)
			}
		}
	}
}

// try renders values as helm does, with a schema that is compiled once: there are many.
func try(loaded *chart.Chart, schema *jsonschema.Schema, values map[string]any) (string, error) {
	all, err := chartutil.CoalesceValues(loaded, values)
	if err != nil {
		return "", err
	}
	if err := schema.Validate(map[string]any(all)); err != nil {
		return "", err
	}
	one, err := renderWith(loaded, values, "tailrace", namespace, kubeVersion, true)
	return one.manifests, err
}

// Where nothing is the default, `null` is the same as the default.
func TestNullIsNothing(t *testing.T) {
	loaded := loadChart(t)
	defaults := parseValues(t, read(t, chartDir+"/values.yaml"))
	want, err := render(loaded, parseValues(t, endpointValue), namespace, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths("", defaults) {
		if value, _ := lookup(defaults, path); !isNothing(value) || path == "otlp.endpoint" {
			continue
		}
		values := parseValues(t, endpointValue)
		put(values, path, nil)
		one, err := render(loaded, values, namespace, kubeVersion)
		if err != nil {
			t.Errorf("%s: null is refused: %v", path, err)
		} else if one.manifests != want.manifests || one.notes != want.notes {
			t.Errorf("%s: null is not the default%s", path, firstDifference(one.manifests+one.notes, want.manifests+want.notes))
		}
	}
}

func isNothing(value any) bool {
	switch value := value.(type) {
	case string:
		return value == ""
	case []any:
		return len(value) == 0
	case map[string]any:
		for _, inner := range value {
			if !isNothing(inner) {
				return false
			}
		}
		return true
	}
	return false
}

// paths gives every value, those that hold others, too.
func paths(prefix string, values map[string]any) []string {
	var found []string
	for _, name := range sortedKeys(values) {
		found = append(found, prefix+name)
		if inner, isMapping := values[name].(map[string]any); isMapping {
			found = append(found, paths(prefix+name+".", inner)...)
		}
	}
	return found
}

// put sets a value by its path.
func put(values map[string]any, path string, value any) {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		values[first] = value
		return
	}
	inner, isMapping := values[first].(map[string]any)
	if !isMapping {
		inner = map[string]any{}
	}
	inner = maps.Clone(inner)
	put(inner, rest, value)
	values[first] = inner
}

// wordsFault tells that a refusal is one of Go's template engine, and not of `fail` or of the schema.
func wordsFault(text string) string {
	switch {
	case !strings.Contains(text, "execution error at") && !strings.Contains(text, "jsonschema validation failed"):
		return "the words are Go's"
	case strings.Contains(text, "%!") || strings.Contains(text, "<nil>"):
		return "the words have a hole"
	}
	return ""
}

// textFault tells what is wrong with manifests as texts.
func textFault(manifests string) string {
	for _, trace := range []string{"<nil>", "%!", "map[", "<no value>"} {
		if strings.Contains(manifests, trace) {
			return trace
		}
	}
	for _, document := range strings.Split("\n"+manifests, "\n---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
			return err.Error()
		}
	}
	return ""
}
