package checks

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// cluster answers `lookup` with what is installed in it.
type cluster struct{ client dynamic.Interface }

func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	return c.client.Resource(version.WithResource(strings.ToLower(kind) + "s")), true, err
}

// upgraded gives a template of the chart, rendered against a cluster in which this object is installed.
func upgraded(t *testing.T, template string, values map[string]any, release, installed string) string {
	t.Helper()
	var objects []runtime.Object
	if installed != "" {
		object := &unstructured.Unstructured{Object: parseValues(t, installed)}
		object.SetNamespace(namespace)
		objects = append(objects, object)
	}
	client := fake.NewSimpleDynamicClient(runtime.NewScheme(), objects...)
	options := chartutil.ReleaseOptions{Name: release, Namespace: namespace, Revision: 2, IsUpgrade: true}
	capabilities := chartutil.DefaultCapabilities.Copy()
	capabilities.KubeVersion.Version = kubeVersion
	loaded := loadChart(t)
	all, err := chartutil.ToRenderValues(loaded, values, options, capabilities)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.RenderWithClientProvider(loaded, all, cluster{client})
	if err != nil {
		t.Fatal(err)
	}
	return files["tailrace/templates/"+template]
}

// Two releases keep their progress apart, and no upgrade moves the directory of one that is there.
func TestTheStateDirectoryIsTheReleasesOwn(t *testing.T) {
	const before = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: tailrace}
spec: {template: {spec: {volumes: [{name: config, configMap: {name: a}}, {name: state, hostPath: {path: /var/lib/tailrace}}]}}}
`
	cases := map[string]struct{ release, installed, values, path string }{
		"a new release":             {"tailrace", "", "{}", "/var/lib/tailrace-kubernetes/logging/tailrace"},
		"another release":           {"second", "", "{}", "/var/lib/tailrace-kubernetes/logging/second-tailrace"},
		"another beside an old one": {"second", before, "{}", "/var/lib/tailrace-kubernetes/logging/second-tailrace"},
		"an old one":                {"tailrace", before, "{}", "/var/lib/tailrace"},
		"a new one again": {"tailrace", strings.Replace(before, "/var/lib/tailrace", "/var/lib/tailrace-kubernetes/logging/tailrace", 1),
			"{}", "/var/lib/tailrace-kubernetes/logging/tailrace"},
		"one that is asked to move": {"tailrace", before, "state: {hostPath: /srv/a}", "/srv/a"},
	}
	for name, test := range cases {
		values := parseValues(t, test.values)
		values["otlp"] = map[string]any{"endpoint": "http://a:4318"}
		text := upgraded(t, "daemonset.yaml", values, test.release, test.installed)
		if !strings.Contains(text, "hostPath: {path: \""+test.path+"\", type: DirectoryOrCreate}") {
			t.Errorf("%s: no %s in\n%s", name, test.path, text)
		}
	}
}
