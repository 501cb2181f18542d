package checks

import (
	"reflect"
	"testing"

	"sigs.k8s.io/yaml"
)

// What the values say of a pipeline is merged over the chart's own, key by key; what they say wins.
func TestPipelinesAreMergedKeyByKey(t *testing.T) {
	const otlp = `type: otlp, protocol: http/protobuf, endpoint: "http://a:4318", headers: {authorization: secret}`
	const pods = "type: kubernetes, metadata: api"
	cases := map[string]struct{ given, input, output string }{
		"nothing":            {"{}", pods, otlp},
		"an option":          {"{output: {concurrency: 8}}", pods, otlp + ", concurrency: 8"},
		"another value":      {"{output: {protocol: grpc}}", pods, `type: otlp, protocol: grpc, endpoint: "http://a:4318", headers: {authorization: secret}`},
		"a header":           {"{output: {headers: {x: z}}}", pods, `type: otlp, protocol: http/protobuf, endpoint: "http://a:4318", headers: {authorization: secret, x: z}`},
		"the same type":      {"{output: {type: otlp, timeout: 5s}}", pods, otlp + ", timeout: 5s"},
		"null":               {"{output: null, input: null}", pods, otlp},
		"null for lists":     {"{outputs: null, inputs: null}", pods, otlp},
		"empty lists":        {"{outputs: [], inputs: []}", pods, otlp},
		"an option of input": {"{input: {metadata_wait: 10s}}", pods + ", metadata_wait: 10s", otlp},
		"false over true":    {"{input: {service_from_labels: false}}", pods + ", service_from_labels: false", otlp},
		"another input":      {"{input: {type: file, include: [/a]}}", "type: file, include: [/a]", otlp},
		"another output":     {"{output: {type: stdout}}", pods, "type: stdout"},
		// Headers are secrets, and certificates are of one server.
		"another server":  {`{output: {endpoint: "http://b:4318"}}`, pods, `type: otlp, endpoint: "http://b:4318"`},
		"another address": {`{output: {logs_endpoint: "http://b/l"}}`, pods, `type: otlp, logs_endpoint: "http://b/l"`},
	}
	for name, test := range cases {
		values := parseValues(t, "otlp: {endpoint: \"http://a:4318\", headers: {authorization: secret}}\n"+
			"config: {pipelines: {pods: "+test.given+"}}")
		if name == "false over true" {
			values["presets"] = map[string]any{"kubernetesAttributes": map[string]any{"serviceFromLabels": true}}
		}
		pipeline := pipelinesOf(t, values)["pods"]
		want := parseValues(t, "batch: {max_bytes: 512KiB}\ninput: {"+test.input+"}\noutput: {"+test.output+"}")
		if !reflect.DeepEqual(pipeline, want) {
			t.Errorf("%s: %v, expected %v", name, pipeline, want)
		}
	}
}

// Lists of inputs and outputs stand instead of what the preset has; each output is completed as a single one is.
func TestListsReplaceThePresets(t *testing.T) {
	values := parseValues(t, `
otlp: {endpoint: "http://a:4318"}
config:
  pipelines:
    pods:
      inputs: [{type: file, include: [/a]}]
      outputs: [{name: main}, {name: copy, type: stdout}, {name: other, endpoint: "http://b:4318"}]
`)
	want := parseValues(t, `
batch: {max_bytes: 512KiB}
inputs: [{type: file, include: [/a]}]
outputs:
  - {name: main, type: otlp, protocol: http/protobuf, endpoint: "http://a:4318"}
  - {name: copy, type: stdout}
  - {name: other, type: otlp, endpoint: "http://b:4318"}
`)
	if pipeline := pipelinesOf(t, values)["pods"]; !reflect.DeepEqual(pipeline, want) {
		t.Errorf("%v, expected %v", pipeline, want)
	}
}

// pipelinesOf gives what the agent's config says of its pipelines.
func pipelinesOf(t *testing.T, values map[string]any) map[string]any {
	t.Helper()
	one, err := render(loadChart(t), values, namespace, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	var object struct{ Data map[string]string }
	if err := yaml.Unmarshal([]byte(one.files["configmap.yaml"]), &object); err != nil {
		t.Fatal(err)
	}
	config := parseValues(t, object.Data["tailrace.yaml"])
	return config["pipelines"].(map[string]any)
}
