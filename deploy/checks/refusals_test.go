package checks

import (
	"strings"
	"testing"
)

const endpointValue = "otlp: {endpoint: \"http://collector:4318\"}\n"

// checkRefusals renders each set of values, which must be refused with this message.
func checkRefusals(t *testing.T, cases map[string]string) {
	t.Helper()
	loaded := loadChart(t)
	for values, message := range cases {
		text := values
		if !strings.Contains(values, "otlp:") {
			text = endpointValue + values
		}
		_, err := render(loaded, parseValues(t, text), namespace, kubeVersion)
		if err == nil {
			t.Errorf("%s: not refused", values)
		} else if !strings.Contains(err.Error(), message) {
			t.Errorf("%s: refused without %q: %v", values, message, err)
		}
	}
}

// checkTaken renders each set of values, which must not be refused.
func checkTaken(t *testing.T, cases []string) {
	t.Helper()
	loaded := loadChart(t)
	for _, values := range cases {
		text := values
		if !strings.Contains(values, "otlp:") {
			text = endpointValue + values
		}
		one, err := render(loaded, parseValues(t, text), namespace, kubeVersion)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		objects, err := decode(one.manifests)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		for _, fault := range faults(objects) {
			t.Errorf("%s: %s", values, fault)
		}
	}
}

// Where the kubelet would ask another address than the one at which the agent listens, no pod would get ready.
func TestTheProbesFindTheAgent(t *testing.T) {
	const override = "otlp: {}\nconfigOverride: {pipelines: {a: {input: {type: stdin}, output: {type: stdout}}}, "
	checkRefusals(t, map[string]string{
		`admin: {listen: "127.0.0.1:9464"}`:                        "admin.listen: 127.0.0.1:9464 is loopback",
		`admin: {listen: "[::1]:9464"}`:                            "is loopback",
		`admin: {listen: "[0:0:0:0:0:0:0:1]:9464"}`:                "is loopback",
		"hostNetwork: true\nadmin: {listen: \"127.9.9.9:9464\"}":   "is loopback",
		`admin: {listen: "0.0.0.0:0"}`:                             "no port from 1 to 65535",
		`admin: {listen: "0.0.0.0:65536"}`:                         "no port from 1 to 65535",
		`admin: {listen: "0.0.0.0:09464"}`:                         "no port from 1 to 65535",
		`admin: {listen: "10.0.0.1:9464"}`:                         "each pod has its own",
		`admin: {listen: "0.0.0.256:9464"}`:                        "/admin/listen",
		`config: {admin: {listen: "0.0.0.0:9000"}}`:                "set admin.listen instead",
		`config: {admin: {listen: null}}`:                          "set admin.listen instead",
		`config: {admin: {listen: "127.0.0.1:9464"}}`:              "set admin.listen instead",
		`config: {admin: null}`:                                    "config.admin: the probes need the admin endpoint",
		override + `admin: {listen: "127.0.0.1:9464"}}`:            "configOverride.admin.listen: 127.0.0.1:9464 is loopback",
		override + `admin: {listen: "unix:/run/tailrace/a:9464"}}`: `needs admin: {listen: "0.0.0.0:9464"}`,
		override + `admin: {}}`:                                    `needs admin: {listen: "0.0.0.0:9464"}`,
	})
	checkTaken(t, []string{
		`admin: {listen: "[::]:9464"}`,
		`admin: {listen: "[0:0::0]:80"}`,
		"hostNetwork: true\nadmin: {listen: \"10.0.0.1:9464\"}",
		`config: {admin: {listen: "0.0.0.0:9464", examples: true}}`,
		`config: {admin: {listen: "{{ .Values.admin.listen }}"}}`,
		`config: {admin: {token: "${file:/etc/token-of-sixteen}"}}`,
	})
}

// The state directory is mounted at one place.
func TestTheProgressIsKeptOnTheNode(t *testing.T) {
	const override = "otlp: {}\nconfigOverride: {admin: {listen: \"0.0.0.0:9464\"}, pipelines: {a: {input: {type: stdin}, output: {type: stdout}}}, "
	checkRefusals(t, map[string]string{
		"config: {data_dir: /data}":                        "config.data_dir: the chart mounts the state directory at /var/lib/tailrace",
		"config: {data_dir: null}":                         "state.hostPath chooses",
		override + "data_dir: /data}":                      "configOverride.data_dir: the chart mounts",
		"extraArgs: [--data-dir, /d]":                      "state.hostPath",
		"extraEnv: [{name: TAILRACE_DATA_DIR, value: /d}]": "extraEnv: TAILRACE_DATA_DIR is not for the chart",
		"state: {hostPath: relative}":                      "/state/hostPath",
	})
	checkTaken(t, []string{
		"config: {data_dir: /var/lib/tailrace}",
		"config: {data_dir: /var/lib/tailrace/}",
		override + "data_dir: /var/lib/tailrace}",
		"state: {hostPath: \"/srv/a, b}/#\"}",
	})
}

// A stop that takes longer than Kubernetes waits loses what the agent wanted to deliver.
func TestTheGracePeriodIsLongEnough(t *testing.T) {
	checkRefusals(t, map[string]string{
		"config: {shutdown: {grace: 60s}}":                                      "raise terminationGracePeriodSeconds",
		"config: {shutdown: {grace: 1m30s}}\nterminationGracePeriodSeconds: 90": "shutdown.grace: 1m30s of the config is not less than terminationGracePeriodSeconds: 90",
		"config: {shutdown: {grace: 1h}}":                                       "shutdown.grace: 1h",
	})
	checkTaken(t, []string{
		"config: {shutdown: {grace: 59500ms}}", "config: {shutdown: {grace: 0}}", "config: {shutdown: {grace: \"${GRACE}\"}}",
		"config: {shutdown: {grace: 0.5h}}\nterminationGracePeriodSeconds: 1000000", "config: {shutdown: null}",
	})
}

// The role is for an account that somebody chose.
func TestTheRoleIsNotForTheDefaultAccount(t *testing.T) {
	checkRefusals(t, map[string]string{
		"serviceAccount: {create: false}": "set serviceAccount.name, or rbac.create=false",
	})
	checkTaken(t, []string{
		"serviceAccount: {create: false, name: default}",
		"serviceAccount: {create: false}\nrbac: {create: false}",
		"serviceAccount: {create: false}\npresets: {kubernetesAttributes: {enabled: false}}",
	})
}

func TestContainersAreChecked(t *testing.T) {
	checkRefusals(t, map[string]string{
		"extraEnv: [{name: A, value: 1}]":                                "/extraEnv/0/value",
		"extraEnv: [{name: A, value: true}]":                             "/extraEnv/0/value",
		"extraEnv: [{name: A, vlaue: b}]":                                "vlaue",
		"extraEnv: [{value: a}]":                                         "missing property 'name'",
		"extraEnv: [{name: K8S_NODE_NAME, value: a}]":                    "extraEnv: K8S_NODE_NAME is there twice",
		"extraEnv: [{name: A, value: a}, {name: A, value: b}]":           "extraEnv: A is there twice",
		"clusterName: a\nextraEnv: [{name: K8S_CLUSTER_NAME, value: a}]": "extraEnv: K8S_CLUSTER_NAME is there twice",
		"logLevel: info\nextraEnv: [{name: TAILRACE_LOG, value: a}]":     "set one of them",
		"extraArgs: [--watch]":                                           "leave it out",
		"extraContainers: [{name: tailrace, image: a}]":                  "choose another name",
		"securityProfile: nonroot-group0\nstate: {chown: {enabled: true}}\ninitContainers: [{name: chown-state, image: a}]": "choose another name",
		"extraContainers: [{image: a}]": "missing property 'name'",
		"extraContainers: [{name: a, image: a}]\ninitContainers: [{name: a, image: a}]": "choose another name",
		"initContainers: [{name: a, image: a, env: [{name: B, value: 1}]}]":             "/initContainers/0/env/0/value",
		"logLevel: loud":                    "value must be one of '', 'off', 'error', 'warn', 'info', 'debug', 'trace'",
		"logLevel: warning":                 "/logLevel",
		"logLevel: verbose":                 "/logLevel",
		"logLevel: true":                    "/logLevel",
		"logLevel: info debug":              "/logLevel",
		"logLevel: tailrace=loud":           "/logLevel",
		"probes: {liveness: {httpget: {}}}": "httpget",
		"image: {repository: \"a:1\"}":      "/image/repository",
		"image: {registry: \"https://r\"}":  "/image/registry",
		"image: {tag: 1.0}":                 "/image/tag",
		"resources: {limit: {}}":            "limit",
	})
	checkTaken(t, []string{
		"logLevel: tailrace=debug", "logLevel: \"info,tailrace_inputs::file[span{a=1}]=trace\"", "logLevel: WARN",
		"enabled: true", "extraEnv: [{name: A, value: \"1\"}]", "configReload: {enabled: false}\nextraArgs: [--watch]",
		"image: {repository: localhost:5000/a/b}", "image: {registry: \"localhost:5000/\"}",
	})
	// YAML takes it for a boolean.
	one, err := render(loadChart(t), parseValues(t, endpointValue+"logLevel: off"), namespace, kubeVersion)
	if err != nil || !strings.Contains(one.files["daemonset.yaml"], `"--log-level=off"`) {
		t.Errorf("logLevel: off: %v\n%s", err, one.files["daemonset.yaml"])
	}
}

func TestVolumesAreChecked(t *testing.T) {
	checkRefusals(t, map[string]string{
		"extraVolumes: [{name: config, emptyDir: {}}]":                                   "extraVolumes: a volume config is there already",
		"extraVolumes: [{name: secret-a, emptyDir: {}}]\nsecretFiles: [{secretName: a}]": "a volume secret-a is there already",
		"extraVolumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]":               "a volume a is there already",
		"extraVolumes: [{emptyDir: {}}]":                                                 "missing property 'name'",
		"extraVolumes: [{name: A_b, emptyDir: {}}]":                                      "/extraVolumes/0/name",
		"extraVolumeMounts: [{name: a, mountPath: /a}]":                                  "there is no volume a: add it to extraVolumes",
		"extraVolumeMounts: [{name: state, mountPath: /var/lib/tailrace/}]":              "state and state are both mounted at /var/lib/tailrace",
		"extraVolumeMounts: [{name: state, mountPath: /a, subPath: y}]":                  "/extraVolumeMounts/0/subPath",
		"extraVolumeMounts: [{name: state, mountPath: var}]":                             "/extraVolumeMounts/0/mountPath",
		"secretFiles: [{secretName: a}, {secretName: a}]":                                "are both mounted at /run/secrets/a: give one of them another mountPath",
		"secretFiles: [{secretName: A_b}]":                                               "/secretFiles/0/secretName",
		"secretFiles: [{secretName: a, mountPath: \"/a:b\"}]":                            "/secretFiles/0/mountPath",
		"config: {admin: {token: \"${file:/run/secrets/a/token}\"}}":                     "config names /run/secrets/a/token, which nothing mounts",
		"config: {pipelines: {pods: {output: {tls: {ca_file: /run/secrets/b/ca.crt}}}}}": "secretFiles, as [{secretName: b}]",
	})
	checkTaken(t, []string{
		"extraVolumes: [{name: a, emptyDir: {}}]\nextraVolumeMounts: [{name: a, mountPath: /a}]",
		"otlp: {endpoint: \"https://a\", headers: {x: \"${file:/run/secrets/b/key}\"}}\nsecretFiles: [{secretName: a, mountPath: /run/secrets/b/}]",
		// The token's directory is the kubelet's.
		"otlp: {endpoint: \"https://a\", tls: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}}",
	})
}

// The test's pod validates the config, and so has the files that it may name; the node's it may not have.
func TestTheTestHasTheFilesOfTheConfig(t *testing.T) {
	text := endpointValue + "extraVolumes: [{name: certs, secret: {secretName: a}}, {name: node, hostPath: {path: /n}}]\n" +
		"extraVolumeMounts: [{name: certs, mountPath: /certs, readOnly: true}, {name: node, mountPath: /n}]\n"
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
	if test := one.files["tests/test.yaml"]; !strings.Contains(test, "mountPath: /certs") || strings.Contains(test, "hostPath") {
		t.Errorf("the test has other volumes than it needs:\n%s", test)
	}
}

func TestNamesAreChecked(t *testing.T) {
	checkRefusals(t, map[string]string{
		"nameOverride: My-Agent":                                "see fullnameOverride and nameOverride",
		"nameOverride: \"a b\"":                                 "/nameOverride",
		"fullnameOverride: A":                                   "/fullnameOverride",
		"fullnameOverride: агент":                               "/fullnameOverride",
		"fullnameOverride: \"123\"":                             "set fullnameOverride, or service.enabled=false",
		"fullnameOverride: a.b":                                 "set fullnameOverride, or service.enabled=false",
		"serviceAccount: {name: 123}":                           "/serviceAccount/name",
		"serviceAccount: {name: a_b}":                           "/serviceAccount/name",
		"imagePullSecrets: [registry]":                          "/imagePullSecrets/0",
		"priorityClassName: \"a b\"":                            "/priorityClassName",
		"podLabels: {a: \"b c\"}":                               "/podLabels/a",
		"nodeSelector: {a: true}":                               "/nodeSelector/a",
		"podMonitor: {labels: {app.kubernetes.io/name: x}}":     "podMonitor.labels: the chart itself sets app.kubernetes.io/name",
		"otlp: {}\nconfigMap: {existingName: A_b}":              "/configMap/existingName",
		"otlp: {}\nconfigMap: {existingName: a, key: a/b.yaml}": "/configMap/key",
		"otlp: {endpoint: \"http://a:4318:4318\"}":              "write http://HOST:PORT",
		"otlp: {endpoint: \"http://a:99999\"}":                  "write http://HOST:PORT",
		"otlp: {endpoint: \"http://u:p@a\"}":                    "write http://HOST:PORT",
	})
	checkTaken(t, []string{
		"fullnameOverride: \"123\"\nservice: {enabled: false}", "fullnameOverride: a.b\nservice: {enabled: false}",
		"otlp: {endpoint: \"http://[fd00::1]:4318/otlp\"}", "otlp: {endpoint: \"http://a:4318/p:99999\"}",
	})
}

// An input that cannot be, or that would ask without a token or a role.
func TestInputsAreChecked(t *testing.T) {
	const off = "presets: {kubernetesAttributes: {enabled: false}}\n"
	const override = "otlp: {}\n" + off + "configOverride: {admin: {listen: \"0.0.0.0:9464\"}, pipelines: {a: {output: {type: stdout}, "
	checkRefusals(t, map[string]string{
		"config: {pipelines: {pod: {transform: SELECT * FROM logs}}}":                                 "pipeline pod: an input needs a type",
		"config: {pipelines: {Web App: {input: {type: stdin}}}}":                                      "pipeline \"Web App\": a name is",
		"config: {pipelines: {app: {input: {include: [/a]}}}}":                                        "add config.pipelines.app.input",
		"config: {pipelines: {app: {inputs: [{type: stdin}, {include: [/a]}]}}}":                      "pipeline app: an input needs a type",
		"config: {pipelines: {pods: {input: {metadata: kubelet}}}}":                                   "source: api: set that to kubelet",
		off + "config: {pipelines: {pods: {input: {metadata: api}}}}":                                 "enable both, or set metadata: path",
		off + "config: {pipelines: {app: {inputs: [{type: kubernetes}]}}}":                            "enable both, or set metadata: path",
		override + "input: {type: kubernetes}}}}":                                                     "enable both, or set metadata: path",
		"presets: {podLogs: {enabled: false}}\nconfig: {pipelines: {pods: {input: {labels: [app]}}}}": "an input needs a type",
	})
	checkTaken(t, []string{
		"config: {pipelines: {app: {inputs: [{type: stdin}]}}}",
		"rbac: {create: false}\nconfig: {pipelines: {pods: {input: {metadata: kubelet}}}}",
		"config: {pipelines: {pods: {input: {metadata: path}}}}",
		off + "config: {pipelines: {pods: {input: {metadata: path}}}}",
		override + "input: {type: kubernetes, metadata: path}}}}",
		override + "input: {type: kubernetes, metadata: \"${SOURCE}\"}}}}",
	})
}
