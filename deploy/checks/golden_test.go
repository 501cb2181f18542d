package checks

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

func TestTheChartLintsStrictly(t *testing.T) {
	version := &chartutil.KubeVersion{Version: kubeVersion, Major: "1", Minor: "33"}
	for name, values := range valueSets(t) {
		for _, message := range lint.AllWithKubeVersion(chartDir, values, namespace, version).Messages {
			if message.Severity >= support.WarningSev {
				t.Errorf("%s: %s", name, message)
			}
		}
	}
}

// Whoever changes a template sees here what it does to an installation.
func TestRendersAreAsRecorded(t *testing.T) {
	all := renderAll(t)
	for name, one := range all {
		notes := "# " + strings.ReplaceAll(one.notes, "\n", "\n# ")
		notes = strings.ReplaceAll(notes, "# \n", "#\n")
		same(t, goldenDir+"/"+name+".yaml", one.manifests+"---\n# NOTES.txt\n"+notes+"\n")
	}
	paths, err := filepath.Glob(goldenDir + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, found := all[strings.TrimSuffix(filepath.Base(path), ".yaml")]; !found {
			t.Errorf("%s: no values of that name in %s", path, valuesDir)
		}
	}
}

// Values that cannot work are refused in words that tell what to do.
func TestRefusalsSayWhatToDo(t *testing.T) {
	const endpoint = "otlp: {endpoint: \"http://collector:4318\"}\n"
	cases := map[string]struct{ values, version, message string }{
		"no endpoint":    {"{}", kubeVersion, "set otlp.endpoint, such as"},
		"no scheme":      {"otlp: {endpoint: \"collector:4318\"}", kubeVersion, "write http://HOST:PORT"},
		"another scheme": {"otlp: {endpoint: \"grpc://collector:4317\"}", kubeVersion, "https://HOST:PORT"},
		"a template":     {"otlp: {endpoint: \"http://c.{{ .Release.Name }}\"}", kubeVersion, "is no URL"},
		"the whole URL":  {"otlp: {endpoint: \"https://c:4318/v1/logs/\"}", kubeVersion, "leave it out"},
		"CA not mounted": {"otlp: {endpoint: \"https://c\", tls: {ca_file: /run/secrets/a/ca.crt}}\nsecretFiles: [{secretName: b, mountPath: /run/secrets/a/c}]",
			kubeVersion, "secretFiles, as [{secretName: a}]"},
		"header not mounted": {"otlp: {endpoint: \"https://c\", headers: {x: \"Key ${file:/run/secrets/a/key}\"}}\nsecretFiles: [{secretName: a, mountPath: /run/secrets/a/k}]",
			kubeVersion, "names /run/secrets/a/key, which nothing mounts"},
		"pipeline without content": {endpoint + "config: {pipelines: {pods: null}}", kubeVersion, "switch the preset off"},
		"template that is no YAML": {endpoint + "clusterName: \"a\\nb: [c\"\n" +
			"config: {resource: {\"{{ .Values.clusterName }}\": a}}", kubeVersion, "config is no YAML"},
		"plan above the limit":     {endpoint + "config: {limits: {memory: 300MiB}}", kubeVersion, "300MiB of the config is more than resources.limits.memory: 256Mi"},
		"plan above, other units":  {endpoint + "config: {limits: {memory: 1GB}}\nresources: {limits: {memory: 953Mi}}", kubeVersion, "lower limits.memory"},
		"plan above, bytes":        {endpoint + "config: {limits: {memory: 268435457}}", kubeVersion, "lower limits.memory"},
		"plan above, a template":   {endpoint + "config: {limits: {memory: \"{{ 300 }}MiB\"}}", kubeVersion, "lower limits.memory"},
		"plan above, whole config": {"configOverride: {limits: {memory: 1GiB}, admin: {listen: \"0.0.0.0:9464\"}, pipelines: {a: {input: {type: stdin}, output: {type: stdout}}}}", kubeVersion, "lower limits.memory"},
		"limit that is no amount":  {endpoint + "config: {limits: {memory: 1MiB}}\nresources: {limits: {memory: lots}}", kubeVersion, "lots is no amount of memory"},
		"label of the chart":       {endpoint + "commonLabels: {app.kubernetes.io/name: x}", kubeVersion, "see nameOverride"},
		"config by argument":       {endpoint + "extraArgs: [--config=/x.yaml]", kubeVersion, "use config"},
		"two log levels":           {endpoint + "logLevel: debug\nextraArgs: [--log-level=info]", kubeVersion, "set one of them"},
		"policy of the host":       {endpoint + "hostNetwork: true\nnetworkPolicy: {enabled: true}", kubeVersion, "no effect on pods with hostNetwork"},
		"budget in percent":        {endpoint + "podDisruptionBudget: {minAvailable: 50%}", kubeVersion, "minAvailable"},
		"gateway":                  {endpoint + "mode: deployment", kubeVersion, "needs the OTLP input"},
		"unknown value":            {endpoint + "presets: {podLogs: {enabeld: true}}", kubeVersion, "enabeld"},
		"nothing to read":          {endpoint + "presets: {podLogs: {enabled: false}}", kubeVersion, "nothing to read"},
		"two configs":              {"config: {workers: 1}\nconfigOverride: {pipelines: {}, admin: {listen: \"0.0.0.0:9464\"}}", kubeVersion, "set one of them"},
		"override without admin": {"configOverride: {pipelines: {a: {input: {type: stdin}}}}", kubeVersion,
			"needs admin: {listen: \"0.0.0.0:9464\"}"},
		"config beside existing": {endpoint + "configMap: {existingName: x}", kubeVersion, "leave them out"},
		"kubelet of old":         {endpoint + "presets: {kubernetesAttributes: {source: kubelet}}", "v1.32.9", "use source: api"},
		"chown for root":         {endpoint + "state: {chown: {enabled: true}}", kubeVersion, "nonroot-group0"},
		"monitor, no service":    {endpoint + "serviceMonitor: {enabled: true}\nservice: {enabled: false}", kubeVersion, "podMonitor"},
		"unknown port": {"otlp: {endpoint: \"${ENDPOINT}\"}\nnetworkPolicy: {enabled: true}", kubeVersion,
			"networkPolicy.extraEgress"},
		"grace below the drain": {endpoint + "terminationGracePeriodSeconds: 30", kubeVersion, "terminationGracePeriodSeconds"},
		"own pipeline without endpoint": {"config: {pipelines: {pods: {output: {type: otlp}}}}", kubeVersion,
			"pipeline pods has nowhere"},
	}
	for limit, plan := range map[string]string{"256Mi": "256MiB", "1G": "1GB", "0.5Gi": "512MiB", "1e9": "1000MB", "128000000000m": "128MB"} {
		values := parseValues(t, endpoint+"config: {limits: {memory: "+plan+"}}\nresources: {limits: {memory: "+limit+"}}")
		if _, err := render(loadChart(t), values, namespace, kubeVersion); err != nil {
			t.Errorf("%s within %s: %v", plan, limit, err)
		}
	}
	loaded := loadChart(t)
	for name, test := range cases {
		_, err := render(loaded, parseValues(t, test.values), namespace, test.version)
		if err == nil {
			t.Errorf("%s: not refused", name)
		} else if !strings.Contains(err.Error(), test.message) {
			t.Errorf("%s: refused without %q: %v", name, test.message, err)
		}
	}
}

// A chart must not ship its own tests.
func TestWhatShips(t *testing.T) {
	for _, file := range loadChart(t).Raw {
		if strings.HasPrefix(file.Name, "ci/") {
			t.Errorf("%s is packaged: see .helmignore", file.Name)
		}
	}
	for _, link := range []string{"../grafana/tailrace.json", "../grafana/alerts.yaml"} {
		if _, err := os.Stat(link); err != nil {
			t.Errorf("%v", err)
		}
	}
}
