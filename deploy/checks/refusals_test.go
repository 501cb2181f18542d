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
		"hostNetwork: true\nadmin: {listen: \"127.9.9.9:9464\"}":   "or, with hostNetwork, probes.liveness: {httpGet: {host: \"127.9.9.9\"}}",
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

// At loopback nobody finds the agent but a probe that asks there.
func TestTheProbesMayAskAtLoopback(t *testing.T) {
	probes := func(host string) string {
		return "probes: {startup: {httpGet: {host: \"" + host + "\"}}, liveness: {tcpSocket: {host: \"" + host + "\", port: admin}}, readiness: null}\n"
	}
	const four, six, noService = "admin: {listen: \"127.0.0.1:9464\"}\n", "admin: {listen: \"[::1]:9464\"}\n", "service: {enabled: false}\n"
	const override = "otlp: {}\nconfigOverride: {pipelines: {a: {input: {type: stdin}, output: {type: stdout}}}, admin: {listen: \"127.0.0.1:9464\"}}\n"
	const asked = "probes: {startup: null, liveness: {exec: {command: [/tailrace, ready, --admin, \"127.0.0.1:9464\"]}}, readiness: null}\n"
	checkRefusals(t, map[string]string{
		four + noService + probes("127.0.0.1"):                                                         "is loopback",
		"hostNetwork: true\n" + four + noService + probes("::1"):                                       "probes.liveness: {httpGet: {host: \"127.0.0.1\"}}",
		"hostNetwork: true\n" + six + noService + probes("[::1]"):                                      "probes.liveness: {httpGet: {host: \"::1\"}}",
		"hostNetwork: true\n" + four + probes("127.0.0.1"):                                             "set service.enabled: false",
		"hostNetwork: true\n" + four + noService + probes("127.0.0.1") + "podMonitor: {enabled: true}": "podMonitor.enabled: false",
		four + noService + "probes: {readiness: {grpc: {port: 9464}}}":                                 "is loopback",
		"hostNetwork: true\n" + override + noService:                                                   "configOverride.admin.listen: 127.0.0.1:9464 is loopback",
	})
	checkTaken(t, []string{
		"hostNetwork: true\n" + four + noService + probes("127.0.0.1"),
		"hostNetwork: true\n" + six + noService + probes("::1"),
		"hostNetwork: true\n" + override + noService + probes("127.0.0.1"),
		four + noService + asked,
	})
	// What the notes say to call asks there, too.
	for listen, inside := range map[string]string{four: "127.0.0.1:9464", six: "[::1]:9464", "": "127.0.0.1:9464"} {
		one, err := render(loadChart(t), parseValues(t, endpointValue+listen+noService+asked), namespace, kubeVersion)
		if err != nil || !strings.Contains(one.notes, "/tailrace ledger --admin "+inside+"\n") {
			t.Errorf("%s: no --admin %s (%v) in\n%s", listen, inside, err, one.notes)
		}
	}
}

// A probe of a port at which nobody answers would keep every pod from getting ready.
func TestProbesAskWhatIsServed(t *testing.T) {
	const sidecar = "extraContainers: [{name: a, image: a, ports: [{name: web, containerPort: 8080}]}]\n"
	checkRefusals(t, map[string]string{
		"probes: {liveness: {httpGet: {port: 9999}}}":                                       "probes.liveness.httpGet: nothing in the pod answers at port 9999",
		"probes: {readiness: {httpGet: {port: metrics}}}":                                   `at port "metrics", and no pod would get ready: write httpGet: {port: admin}, which is the port of admin.listen, 9464`,
		"probes: {readiness: {httpGet: {port: \"9464\"}}}":                                  `at port "9464"`,
		"probes: {startup: {tcpSocket: {port: 9464}}}\nadmin: {listen: \"0.0.0.0:9465\"}":   "at port 9464, and no pod would get ready: write httpGet: {port: admin}, which is the port of admin.listen, 9465",
		"probes: {startup: {tcpSocket: {host: null}}}":                                      `probes.startup.tcpSocket: nothing in the pod answers at port ""`,
		"probes: {liveness: {grpc: {port: 9464}}}":                                          "probes.liveness.grpc: nothing in the pod answers at port 9464",
		"hostNetwork: true\nprobes: {liveness: {httpGet: {host: 127.0.0.1, port: 9999}}}":   "at port 9999",
		"probes: {liveness: {httpGet: {host: 127.0.0.1}}}":                                  "probes.liveness.httpGet.host: without hostNetwork the kubelet would ask the node at 127.0.0.1",
		"probes: {liveness: {tcpSocket: {host: localhost, port: admin}}}":                   "leave it out",
		sidecar + "probes: {liveness: {httpGet: {port: web}}}":                              `at port "web"`,
		sidecar + "probes: {liveness: {httpGet: {port: 8081}}}":                             "listed in their ports",
		"otlp: {}\nconfigMap: {existingName: a}\nprobes: {liveness: {httpGet: {port: 80}}}": "at port 80",
		"extraContainers: [{name: a, image: a, ports: 8080}]":                               "/extraContainers/0/ports",
	})
	loaded := loadChart(t)
	for _, values := range []string{
		"probes: {liveness: {httpGet: {port: admin}}}",
		"probes: {liveness: {httpGet: {port: null, path: /readyz}}}",
		"probes: {liveness: {httpGet: {port: 9465}}}\nadmin: {listen: \"0.0.0.0:9465\"}",
		"probes: {liveness: {tcpSocket: {port: 9464}}}",
		"probes: {liveness: {httpGet: null, exec: {command: [/tailrace, --version]}}}",
		"probes: {liveness: {httpGet: {host: proxy.example.com, port: 80}}}",
		"hostNetwork: true\nprobes: {liveness: {httpGet: {host: 127.0.0.1}}}",
		sidecar + "probes: {liveness: {httpGet: {port: 8080}}}",
		sidecar + "probes: {liveness: {grpc: {port: 8080}}}",
		"initContainers: [{name: a, image: a, restartPolicy: Always, ports: [{containerPort: 8080}]}]\nprobes: {liveness: {tcpSocket: {port: 8080}}}",
	} {
		if _, err := render(loaded, parseValues(t, endpointValue+values), namespace, kubeVersion); err != nil {
			t.Errorf("%s: %v", values, err)
		}
	}
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
