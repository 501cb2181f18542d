package checks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"
)

const (
	agentSchema  = "../../config/tailrace.schema.json"
	valuesSchema = "../helm/values.schema.json"
	generatedBy  = "Generated from deploy/helm/values.schema.json and config/tailrace.schema.json. Refresh: " + blessCommand
)

// The chart checks `config` by the agent's own schema, so that a typo is found before anything is installed.
func TestTheSchemaHoldsTheAgents(t *testing.T) {
	var agent any
	if err := json.Unmarshal([]byte(read(t, agentSchema)), &agent); err != nil {
		t.Fatal(err)
	}
	definitions := map[string]any{}
	for name, isPartial := range map[string]bool{"agentConfig": true, "agentConfigOverride": false} {
		embedding := embedding{name: name, isPartial: isPartial, definitions: definitions}
		definitions[name] = embedding.schema(agent, "")
	}
	lines := "  \"definitions\": {\n"
	for _, name := range sortedKeys(definitions) {
		lines += fmt.Sprintf("    %q: %s,\n", name, compact(t, definitions[name]))
	}
	text := read(t, valuesSchema)
	text = strings.Replace(text, "  \"$comment\": \"COMMENT\",\n", fmt.Sprintf("  \"$comment\": %q,\n", generatedBy), 1)
	text = strings.Replace(text, "  \"definitions\": {\n", lines, 1)
	same(t, chartDir+"/values.schema.json", text)
	// Helm keeps the chart with each release, in a Secret of at most 1 MiB.
	if size := len(text); size > 150_000 {
		t.Errorf("values.schema.json has %d bytes", size)
	}
}

// embedding turns the agent's schema into one of values: without descriptions, with templates, and, if it is partial,
// with everything optional, for it is merged over what the presets make.
type embedding struct {
	name        string
	isPartial   bool
	definitions map[string]any
}

func (e *embedding) schema(from any, path string) any {
	switch from := from.(type) {
	case []any:
		var list []any
		for _, item := range from {
			list = append(list, e.schema(item, path))
		}
		return list
	case map[string]any:
		if variants, isUnion := from["oneOf"].([]any); isUnion {
			return e.union(variants, path)
		}
		to := map[string]any{}
		for keyword, value := range from {
			switch {
			case keyword == "description" || keyword == "title" || keyword == "$schema":
			case keyword == "properties" || keyword == "patternProperties":
				inner := map[string]any{}
				for name, property := range value.(map[string]any) {
					inner[name] = e.schema(property, path+"."+name)
				}
				to[keyword] = inner
			case keyword == "required" && e.isPartial:
			case keyword == "type" && e.isPartial:
				to[keyword] = orNull(value)
			case keyword == "anyOf" && e.isPartial:
				to[keyword] = append(e.schema(value, path).([]any), map[string]any{"type": "null"})
			case keyword == "pattern":
				to[keyword] = value.(string) + `|\{\{`
			default:
				to[keyword] = e.schema(value, path)
			}
		}
		return to
	}
	return from
}

// union picks a variant by its `type`, so that a fault is reported for that variant alone. Without a type it is the
// output that the chart completes, or any variant.
func (e *embedding) union(variants []any, path string) any {
	names, choices, untyped := []any{}, []any{}, []any{}
	for _, variant := range variants {
		properties := variant.(map[string]any)["properties"].(map[string]any)
		name := properties["type"].(map[string]any)["const"].(string)
		definition := e.name + path + "." + name
		e.definitions[definition] = e.schema(variant, path+"."+name)
		reference := map[string]any{"$ref": "#/definitions/" + definition}
		names = append(names, name)
		choices = append(choices, map[string]any{
			"if":   map[string]any{"properties": map[string]any{"type": map[string]any{"const": name}}, "required": []any{"type"}},
			"then": reference,
		})
		if isOutput := strings.Contains(path, "output"); !isOutput || name == "otlp" {
			untyped = append(untyped, reference)
		}
	}
	template := map[string]any{"type": "string", "pattern": `\$\{|\{\{`}
	union := map[string]any{
		"type":       "object",
		"properties": map[string]any{"type": map[string]any{"anyOf": []any{map[string]any{"enum": names}, template}}},
		"allOf":      choices,
	}
	if e.isPartial {
		union["type"] = orNull("object")
		hasNoType := map[string]any{"type": "object", "not": map[string]any{"required": []any{"type"}}}
		rest := map[string]any{"anyOf": untyped}
		if len(untyped) == 1 {
			rest = untyped[0].(map[string]any)
		}
		union["allOf"] = append(choices, map[string]any{"if": hasNoType, "then": rest})
	} else {
		union["required"] = []any{"type"}
	}
	return union
}

func orNull(types any) any {
	list, isList := types.([]any)
	if !isList {
		list = []any{types}
	}
	if slices.Contains(list, any("null")) {
		return list
	}
	return append(slices.Clone(list), "null")
}

func compact(t *testing.T, value any) string {
	t.Helper()
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

func sortedKeys(object map[string]any) []string {
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	return sorted(keys)
}

// checkValues gives what the schema has against values that are laid over the chart's.
func checkValues(t *testing.T, values map[string]any) error {
	t.Helper()
	loaded := loadChart(t)
	all, err := chartutil.CoalesceValues(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	return chartutil.ValidateAgainstSchema(loaded, all)
}

// What is wrong in the config is refused, and the message names the place.
func TestWrongConfigsAreRefused(t *testing.T) {
	cases := map[string][]string{
		"config: {piplines: {}}":                                               {"/config", "piplines"},
		"config: {workers: many}":                                              {"/config/workers"},
		"config: {pipelines: {pods: {input: {metadata_wiat: 1s}}}}":            {"/config/pipelines/pods/input", "metadata_wiat"},
		"config: {pipelines: {pods: {output: {concurrency: none}}}}":           {"/config/pipelines/pods/output/concurrency"},
		"config: {pipelines: {pods: {outputs: [{timeout: 5x}]}}}":              {"/config/pipelines/pods/outputs/0/timeout"},
		"config: {pipelines: {pods: {output: {type: kafka}}}}":                 {"/config/pipelines/pods/output/type"},
		"config: {pipelines: {a: {input: {type: file, format: xml}}}}":         {"/config/pipelines/a/input/format"},
		"config: {pipelines: {a: {output: {type: stdout, endpoint: a}}}}":      {"/config/pipelines/a/output", "endpoint"},
		"configOverride: {admin: {listen: \"0.0.0.0:9464\"}}":                  {"/configOverride", "pipelines"},
		"configOverride: {pipelines: {a: {input: {type: file}}}}":              {"/configOverride/pipelines/a/input", "include"},
		"configOverride: {pipelines: {a: {input: {include: [a]}}}}":            {"/configOverride/pipelines/a/input", "type"},
		"configOverride: {pipelines: {}, limits: {memroy: 1MiB}}":              {"/configOverride/limits", "memroy"},
		"config: {limits: {memory: 64Mi}}":                                     {"/config/limits/memory"},
		"config: {pipelines: {a: {input: {type: file, include: {a: \"b\"}}}}}": {"/config/pipelines/a/input/include"},
	}
	for text, parts := range cases {
		err := checkValues(t, parseValues(t, text))
		if err == nil {
			t.Errorf("%s: not refused", text)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q is not in %v", text, part, err)
			}
		}
	}
}

// What the agent takes the chart takes, whole and in parts, with templates and with `null` for what is to be left out.
func TestRightConfigsAreTaken(t *testing.T) {
	paths, err := filepath.Glob("../../config/examples/*.yaml")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d examples: %v", len(paths), err)
	}
	taken := func(name, key, text string) {
		values := map[string]any{key: parseValues(t, text)}
		if err := checkValues(t, values); err != nil {
			t.Errorf("%s as %s: %v", name, key, err)
		}
	}
	for _, path := range append(paths, "../../config/tailrace.yaml") {
		text := read(t, path)
		taken(path, "config", text)
		taken(path, "configOverride", text)
	}
	for _, text := range []string{
		"workers: '{{ .Values.workers }}'",
		"workers: ${WORKERS:-2}",
		"limits: null",
		"pipelines: {pods: {input: null, output: null}}",
		"pipelines: {pods: {output: {concurrency: '{{ add 1 2 }}', timeout: null}}}",
		"x-anything: {a: b}",
		"telemetry: {output: otlp, logs: info, metrics_interval: 5m}",
		// YAML 1.1 takes these for booleans.
		"telemetry: {output: otlp, logs: off, metrics_interval: off}",
		"telemetry: {output: '{{ .Values.name }}', metrics_interval: 0}",
		"pipelines: {a: {input: {type: '{{ .Values.type }}', include: [a]}}}",
	} {
		taken(text, "config", text)
	}
}

// compiled gives the schema of a file.
func compiled(t *testing.T, path string) *jsonschema.Schema {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	parsed, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", parsed); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// What the chart makes of its sets of values is valid by the agent's schema.
func TestRenderedConfigsAreValid(t *testing.T) {
	agent := compiled(t, agentSchema)
	configs := 0
	for name, one := range renderAll(t) {
		var object struct{ Data map[string]string }
		if err := yaml.Unmarshal([]byte(one.files["configmap.yaml"]), &object); err != nil {
			t.Fatal(err)
		}
		if object.Data == nil {
			continue // A ConfigMap of the user's.
		}
		configs++
		if err := agent.Validate(map[string]any(parseValues(t, object.Data["tailrace.yaml"]))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if configs < 20 {
		t.Errorf("only %d configs", configs)
	}
}
