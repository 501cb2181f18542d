package checks

import (
	"fmt"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names that YAML would take for a number, a boolean, nothing or a date stay names.
func TestNamesStayText(t *testing.T) {
	loaded := loadChart(t)
	for _, name := range []string{"123", "true", "null", "1e3", "0x1f", "off", "2026-11-29", "1-1"} {
		text := fmt.Sprintf(`
otlp: {endpoint: "http://collector:4318"}
clusterName: %[1]q
fullnameOverride: %[1]q
nameOverride: %[1]q
priorityClassName: %[1]q
imagePullSecrets: [{name: %[1]q}]
secretFiles: [{secretName: %[1]q}]
serviceAccount: {name: %[1]q, annotations: {a: %[1]q}}
commonLabels: {a: %[1]q}
podAnnotations: {b: %[1]q}
image: {registry: %[1]q, repository: %[1]q, tag: %[1]q}
podMonitor: {enabled: true, labels: {c: %[1]q}}
prometheusRule: {enabled: true}
dashboard: {enabled: true}
networkPolicy: {enabled: true}
podDisruptionBudget: {enabled: true}
service: {enabled: false}
`, name)
		existing := strings.Replace(text, "otlp: {endpoint: \"http://collector:4318\"}", fmt.Sprintf("configMap: {existingName: %q}", name), 1)
		existing = strings.Replace(existing, "networkPolicy: {enabled: true}", "networkPolicy: {enabled: true, extraEgress: [{}]}", 1)
		for _, values := range []string{text, existing} {
			one, err := renderAs(loaded, parseValues(t, values), name, name, kubeVersion)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			objects, err := decode(one.manifests)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			for _, fault := range faults(objects) {
				t.Errorf("%s: %s", name, fault)
			}
		}
	}
}

// Releases of one name in two namespaces have no object in common, also of those that have no namespace.
func TestNamespacesKeepReleasesApart(t *testing.T) {
	owners := map[string]string{}
	for _, space := range []string{"logging", "default"} {
		one, err := renderAs(loadChart(t), parseValues(t, endpointValue), "tailrace", space, kubeVersion)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(one.manifests)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			key := fmt.Sprintf("%T %s/%s", object, object.GetNamespace(), object.GetName())
			if owner, taken := owners[key]; taken {
				t.Errorf("%s is of the releases in %s and %s", key, owner, space)
			}
			owners[key] = space
		}
	}
}

// However long the names are, what is made of them is valid.
func TestLongNamesAreCut(t *testing.T) {
	loaded := loadChart(t)
	release := strings.Repeat("abcdefghi-", 5) + "abc"
	long := strings.Repeat("x-", 45) + "y"
	for _, values := range []string{
		"", "nameOverride: " + long, "fullnameOverride: " + long, "fullnameOverride: " + strings.Repeat("a", 48) + "-----b",
		"nameOverride: " + strings.Repeat("a", 57) + "-----b", "nameOverride: a\nfullnameOverride: " + strings.Repeat("a", 200),
	} {
		one, err := renderAs(loaded, parseValues(t, endpointValue+values), release, namespace, kubeVersion)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		objects, err := decode(one.manifests)
		if err != nil {
			t.Errorf("%s: %v", values, err)
		}
		for _, fault := range faults(objects) {
			t.Errorf("%s: %s", values, fault)
		}
		for _, object := range objects {
			if name := object.GetName(); len(object.GetNamespace()) > 0 && len(name) > validation.DNS1123LabelMaxLength {
				t.Errorf("%s: %s has %d characters", values, name, len(name))
			}
		}
	}
}

// Each Secret has its volume, whatever its name is.
func TestVolumesOfSecretsAreUnique(t *testing.T) {
	long := strings.Repeat("a", 55)
	names := []string{
		"otlp", "a.b", "a-b", "a.b.c", "a-b.c", "a-b-c", "0-a.b", "1-a-b", long + "bb", long + "bbc", long + "bbcd", long + ".x", long + "-x",
		strings.Repeat("b", 53) + ".c", strings.Repeat("b", 54) + ".c", strings.Repeat("b", 52) + "--c.d", "otlp", "a.b",
	}
	text := endpointValue + "secretFiles:\n"
	for index, name := range names {
		text += fmt.Sprintf("  - {secretName: %q, mountPath: /s/%d}\n", name, index)
	}
	one, err := render(loadChart(t), parseValues(t, text), namespace, kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decode(one.manifests)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults(objects) {
		t.Error(fault)
	}
	volumes := 0
	for _, object := range objects {
		if agent, isAgent := object.(*apps.DaemonSet); isAgent {
			for _, volume := range agent.Spec.Template.Spec.Volumes {
				if volume.Secret != nil {
					volumes++
				}
			}
		}
	}
	if volumes != len(names) {
		t.Errorf("%d volumes of %d Secrets", volumes, len(names))
	}
	if !strings.Contains(one.files["daemonset.yaml"], "- name: secret-otlp\n") {
		t.Error("the volume of a Secret with a plain name is not named after it")
	}
}

// What the chart and the values say of one annotation is one key.
func TestAnnotationsAreMerged(t *testing.T) {
	cases := map[string]map[string]string{
		"podAnnotations: {kubectl.kubernetes.io/default-container: proxy}":    {"kubectl.kubernetes.io/default-container": "proxy"},
		"commonAnnotations: {kubectl.kubernetes.io/default-container: proxy}": {"kubectl.kubernetes.io/default-container": "proxy"},
		"commonAnnotations: {a: common}\npodAnnotations: {a: \"\"}":           {"a": ""},
		"podAnnotations: {checksum/config: mine}":                             {"checksum/config": "mine"},
		"commonAnnotations: {helm.sh/hook: none}":                             {"helm.sh/hook": "none"},
		"podAnnotations: {prometheus.io/scrape: \"true\"}":                    {"prometheus.io/scrape": "true", "kubectl.kubernetes.io/default-container": "tailrace"},
	}
	for values, want := range cases {
		for key, value := range want {
			if have := podAnnotations(t, values)[key]; have != value {
				t.Errorf("%s: %s is %q, expected %q", values, key, have, value)
			}
		}
	}
	// Another value would no longer roll the pods.
	sum := podAnnotations(t, "configReload: {enabled: false}\npodAnnotations: {checksum/config: mine}")["checksum/config"]
	if len(sum) != 64 {
		t.Errorf("checksum/config is %q", sum)
	}
}

// podAnnotations gives those of the agent's pods, of objects that are sound.
func podAnnotations(t *testing.T, values string) map[string]string {
	t.Helper()
	one, err := render(loadChart(t), parseValues(t, endpointValue+values), namespace, kubeVersion)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	objects, err := decode(one.manifests)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	for _, object := range objects {
		if agent, isAgent := object.(*apps.DaemonSet); isAgent {
			return agent.Spec.Template.Annotations
		}
	}
	t.Fatal("no DaemonSet")
	return nil
}
