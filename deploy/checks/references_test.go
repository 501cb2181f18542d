package checks

import (
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func selects(selector *meta.LabelSelector, set map[string]string) bool {
	parsed, err := meta.LabelSelectorAsSelector(selector)
	return err == nil && !parsed.Empty() && parsed.Matches(labels.Set(set))
}

// referenceFaults follows what an object says of others.
func referenceFaults(object meta.Object, all []meta.Object, pods map[meta.Object]*core.PodTemplateSpec) []string {
	switch object := object.(type) {
	case *core.Service:
		selector := meta.LabelSelector{MatchLabels: object.Spec.Selector}
		return selectionFaults(&selector, object.Spec.Ports[0].TargetPort.String(), pods)
	case *networking.NetworkPolicy:
		return selectionFaults(&object.Spec.PodSelector, object.Spec.Ingress[0].Ports[0].Port.String(), pods)
	case *policy.PodDisruptionBudget:
		return selectionFaults(object.Spec.Selector, "admin", pods)
	case *monitoring.PodMonitor:
		return selectionFaults(&object.Spec.Selector, *object.Spec.PodMetricsEndpoints[0].Port, pods)
	case *monitoring.ServiceMonitor:
		for _, other := range all {
			service, is := other.(*core.Service)
			if is && selects(&object.Spec.Selector, service.Labels) && service.Spec.Ports[0].Name == object.Spec.Endpoints[0].Port {
				return nil
			}
		}
		return []string{"finds no Service and port"}
	case *rbac.ClusterRoleBinding:
		return bindingFaults(object.RoleRef, object.Subjects, all)
	}
	return nil
}

// selectionFaults are those of a selector that is to find the agent's pods, and only them, at a named port.
func selectionFaults(selector *meta.LabelSelector, port string, pods map[meta.Object]*core.PodTemplateSpec) []string {
	var found []string
	agents := 0
	for object, pod := range pods {
		if !selects(selector, pod.Labels) {
			continue
		}
		if _, isAgent := object.(*apps.DaemonSet); !isAgent {
			found = append(found, "selects "+object.GetName()+", too")
			continue
		}
		agents++
		if name := pod.Spec.Containers[0].Ports[0].Name; name != port {
			found = append(found, "port "+port+" is called "+name)
		}
	}
	if agents != 1 {
		found = append(found, "does not select the agent")
	}
	return found
}

func bindingFaults(role rbac.RoleRef, subjects []rbac.Subject, all []meta.Object) []string {
	hasRole, hasSubject := false, false
	for _, other := range all {
		switch other := other.(type) {
		case *rbac.ClusterRole:
			hasRole = hasRole || role.Kind == "ClusterRole" && other.Name == role.Name
		case *apps.DaemonSet:
			subject := subjects[0]
			hasSubject = subject.Name == other.Spec.Template.Spec.ServiceAccountName && subject.Namespace == other.Namespace
		}
	}
	var found []string
	if !hasRole {
		found = append(found, "no "+role.Kind+" "+role.Name)
	}
	if !hasSubject {
		found = append(found, "does not bind the agent's account")
	}
	return found
}

// Every fault is found when it is there.
func TestFaultsAreFound(t *testing.T) {
	all := renderAll(t)
	cases := []struct{ set, old, new, fault string }{
		{"default", "{name: state, mountPath", "{name: stat, mountPath", "mounts stat, which is no volume"},
		{"default", "{name: state, mountPath", "{name: logs, mountPath", "never mounts state"},
		{"default", "mountPath: /var/log/pods", "mountPath: var/log/pods", "relative or twice"},
		{"default", "mountPath: /var/log/pods", "mountPath: /etc/tailrace", "relative or twice"},
		{"default", "- name: logs\n", "- name: state\n", "two volumes state"},
		{"default", "name: K8S_POD_UID", "name: K8S_POD_NAME", "sets K8S_POD_NAME twice"},
		{"default", "path: /readyz\n              port: admin", "path: /readyz\n              port: metrics", "which is no port"},
		{"default", "matchLabels:\n      app.kubernetes.io/name: tailrace", "matchLabels:\n      app.kubernetes.io/name: x",
			"its selector does not match"},
		{"default", "targetPort: admin", "targetPort: http", "port http is called admin"},
		{"default", "app.kubernetes.io/name: tailrace-test", "app.kubernetes.io/name: tailrace", "selects tailrace-test"},
		{"default", "kind: ClusterRole\n  name: logging-tailrace", "kind: ClusterRole\n  name: x", "no ClusterRole x"},
		{"default", "name: tailrace\n    namespace: logging", "name: x\n    namespace: logging", "does not bind"},
		{"default", "serviceAccountName: tailrace", "serviceAccountName: x", "no ServiceAccount x"},
		{"default", "kind: Service\nmetadata:\n  name: tailrace", "kind: Pod\nmetadata:\n  name: tailrace", "unknown field"},
		{"default", "name: tailrace-test-ready", "name: tailrace-test-config", "is there twice"},
		{"service-monitor", "port: admin\n      path", "port: x\n      path", "finds no Service and port"},
		{"monitoring", "port: admin\n      path", "port: x\n      path", "port x is called admin"},
		{"monitoring", "podMetricsEndpoints", "podMetricEndpoints", "unknown field"},
		{"network-policy", "podSelector:\n    matchLabels:\n      app.kubernetes.io/name: tailrace",
			"podSelector:\n    matchLabels:\n      app.kubernetes.io/name: x", "does not select the agent"},
	}
	for _, test := range cases {
		manifests := all[test.set].manifests
		broken := strings.Replace(manifests, test.old, test.new, 1)
		if broken == manifests {
			t.Errorf("%s holds no %q", test.set, test.old)
			continue
		}
		objects, err := decode(broken)
		found := strings.Join(faults(objects), "\n")
		if err != nil {
			found += err.Error()
		}
		if !strings.Contains(found, test.fault) {
			t.Errorf("%s with %q: expected %q, found %q", test.set, test.new, test.fault, found)
		}
	}
}
