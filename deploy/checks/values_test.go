package checks

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	yamlnodes "go.yaml.in/yaml/v3"
)

const tableBegin, tableEnd = "<!-- values: written from values.yaml -->\n", "<!-- end of values -->\n"

func sorted(texts []string) []string {
	slices.Sort(texts)
	return texts
}

// README's table is values.yaml and its comments.
func TestTheReadmeNamesEveryValue(t *testing.T) {
	path := chartDir + "/README.md"
	text := read(t, path)
	before, rest, found := strings.Cut(text, tableBegin)
	_, after, foundEnd := strings.Cut(rest, tableEnd)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the values: %s...%s", path, tableBegin, tableEnd)
	}
	var document yamlnodes.Node
	if err := yamlnodes.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	table := "\n| value | type | default | what it does |\n|---|---|---|---|\n"
	for _, row := range rows(t, "", document.Content[0]) {
		table += row + "\n"
	}
	same(t, path, before+tableBegin+table+"\n"+tableEnd+after)
}

// rows gives a line for each value that has a comment, and looks into those that have none.
func rows(t *testing.T, prefix string, mapping *yamlnodes.Node) []string {
	t.Helper()
	var lines []string
	for index := 0; index+1 < len(mapping.Content); index += 2 {
		key, value := mapping.Content[index], mapping.Content[index+1]
		name := prefix + key.Value
		_, comment, found := strings.Cut(key.HeadComment, "# -- ")
		switch {
		case found:
			lines = append(lines, fmt.Sprintf("| `%s` | %s | `%s` | %s |", name, typeName(value), literal(t, value),
				strings.ReplaceAll(comment, "|", "\\|")))
		case value.Kind == yamlnodes.MappingNode && len(value.Content) > 0:
			lines = append(lines, rows(t, name+".", value)...)
		default:
			t.Errorf("values.yaml: %s has no comment `# -- ...`", name)
		}
	}
	return lines
}

// Each value is changed by a set of values, so that a render shows what it does. Of modes there is only one that renders.
func TestEveryValueIsTried(t *testing.T) {
	var document yamlnodes.Node
	if err := yamlnodes.Unmarshal([]byte(read(t, chartDir+"/values.yaml")), &document); err != nil {
		t.Fatal(err)
	}
	defaults := parseValues(t, read(t, chartDir+"/values.yaml"))
	sets := valueSets(t)
	for _, row := range rows(t, "", document.Content[0]) {
		name, _, _ := strings.Cut(strings.TrimPrefix(row, "| `"), "`")
		tried := name == "mode"
		for _, values := range sets {
			value, found := lookup(values, name)
			fallback, _ := lookup(defaults, name)
			tried = tried || found && !reflect.DeepEqual(value, fallback)
		}
		if !tried {
			t.Errorf("no set in %s has another %s than the default", valuesDir, name)
		}
	}
}

// lookup finds a value by its path.
func lookup(values map[string]any, path string) (any, bool) {
	first, rest, nested := strings.Cut(path, ".")
	value, found := values[first]
	if inner, isMapping := value.(map[string]any); nested && isMapping {
		return lookup(inner, rest)
	}
	return value, found && !nested
}

func typeName(node *yamlnodes.Node) string {
	names := map[string]string{"!!str": "string", "!!bool": "bool", "!!int": "int", "!!map": "object", "!!seq": "list"}
	return names[node.Tag]
}

func literal(t *testing.T, node *yamlnodes.Node) string {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The schema knows exactly the values there are, and takes no others.
func TestTheSchemaKnowsEveryValue(t *testing.T) {
	var schema map[string]any
	if err := json.Unmarshal([]byte(read(t, chartDir+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	definitions := schema["definitions"].(map[string]any)
	values := parseValues(t, read(t, chartDir+"/values.yaml"))
	for _, fault := range schemaFaults("values", values, schema, definitions) {
		t.Error(fault)
	}
	delete(values, "mode")
	values["image"].(map[string]any)["tga"] = ""
	if found := schemaFaults("values", values, schema, definitions); len(found) != 2 {
		t.Errorf("one value too many and one missing: found %q", found)
	}
}

// isFree tells whether a default need not name all that there may be.
func isFree(path string) bool {
	return path == "values.otlp.tls" || path == "values.resources" || strings.HasPrefix(path, "values.probes.")
}

func schemaFaults(path string, values, schema, definitions map[string]any) []string {
	properties, isObject := schema["properties"].(map[string]any)
	if !isObject {
		return nil // Free, as Kubernetes has it, or a leaf.
	}
	var found []string
	// A parent chart puts values of its own into `global`.
	if schema["additionalProperties"] != false && path != "values.global" {
		found = append(found, path+": the schema takes unknown values")
	}
	names := slices.Concat(slices.Collect(maps.Keys(values)), slices.Collect(maps.Keys(properties)))
	for _, name := range slices.Compact(sorted(names)) {
		value, inValues := values[name]
		property, inSchema := properties[name].(map[string]any)
		if name == "config" || name == "configOverride" {
			continue // By the agent's schema: config_schema_test.go.
		}
		if path == "values" && name == "enabled" {
			continue // Not the chart's: for the condition of a parent chart.
		}
		if reference, is := property["$ref"].(string); is {
			property = definitions[strings.TrimPrefix(reference, "#/definitions/")].(map[string]any)
		}
		inner, isMapping := value.(map[string]any)
		switch {
		case inValues != inSchema && !isFree(path):
			found = append(found, fmt.Sprintf("%s.%s: in values %t, in the schema %t", path, name, inValues, inSchema))
		case isMapping:
			found = append(found, schemaFaults(path+"."+name, inner, property, definitions)...)
		}
	}
	return found
}
