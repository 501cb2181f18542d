package checks

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const kubernetesDir = "../kubernetes"

// What only helm needs.
var helmLabels = regexp.MustCompile(`(?m)^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by):.*\n`)

const generated = "# Generated from deploy/helm/tailrace with deploy/kubernetes/values.yaml. Refresh: " + blessCommand + "\n"

// The plain manifests are the chart's, without what is helm's own.
func TestPlainManifestsAreTheCharts(t *testing.T) {
	values := parseValues(t, read(t, kubernetesDir+"/values.yaml"))
	one, err := render(loadChart(t), values, "tailrace", kubeVersion)
	if err != nil {
		t.Fatal(err)
	}
	whole := generated + "---\n" + read(t, kubernetesDir+"/base/namespace.yaml")
	listed := read(t, kubernetesDir+"/base/kustomization.yaml")
	for _, name := range []string{"serviceaccount.yaml", "rbac.yaml", "configmap.yaml", "daemonset.yaml"} {
		text := helmLabels.ReplaceAllString(one.files[name], "")
		same(t, kubernetesDir+"/base/"+name, generated+text)
		whole += "---\n" + text
		if !strings.Contains(listed, "- "+name+"\n") {
			t.Errorf("base/kustomization.yaml does not list %s", name)
		}
		delete(one.files, name)
	}
	delete(one.files, "tests/test.yaml")
	for name := range one.files {
		t.Errorf("%s is in no plain manifest", name)
	}
	same(t, kubernetesDir+"/tailrace.yaml", whole)
}

func TestKustomizeMakesWhatIsPlain(t *testing.T) {
	plain, err := decode(read(t, kubernetesDir+"/tailrace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults(plain) {
		t.Error(fault)
	}
	level := plain[0].(*core.Namespace).Labels[api.EnforceLevelLabel]
	if level != string(api.LevelPrivileged) {
		t.Errorf("the namespace enforces %q: no agent would start", level)
	}
	base := kustomize(t, "base")
	built, err := decode(base)
	if err != nil {
		t.Fatal(err)
	}
	if len(built) != len(plain) {
		t.Errorf("kustomize makes %d objects of %d", len(built), len(plain))
	}
	example := kustomize(t, "example")
	for _, text := range []string{"value: http://otel.example.com:4318", "namespace: logging"} {
		if strings.Contains(base, text) || !strings.Contains(example, text) {
			t.Errorf("the example does not change the base to %q", text)
		}
	}
}

func kustomize(t *testing.T, dir string) string {
	t.Helper()
	path, err := filepath.Abs(kubernetesDir + "/" + dir)
	if err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := built.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
