package checks

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	scheduling "k8s.io/api/scheduling/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// kinds are the objects that the chart may make. Decoding is strict: a field that a type lacks is a fault, which
// for those of the Prometheus operator is the only check there is.
var kinds = map[string]func() meta.Object{
	"apps/v1 DaemonSet":                        func() meta.Object { return &apps.DaemonSet{} },
	"v1 ConfigMap":                             func() meta.Object { return &core.ConfigMap{} },
	"v1 Namespace":                             func() meta.Object { return &core.Namespace{} },
	"v1 Pod":                                   func() meta.Object { return &core.Pod{} },
	"v1 Service":                               func() meta.Object { return &core.Service{} },
	"v1 ServiceAccount":                        func() meta.Object { return &core.ServiceAccount{} },
	"policy/v1 PodDisruptionBudget":            func() meta.Object { return &policy.PodDisruptionBudget{} },
	"networking.k8s.io/v1 NetworkPolicy":       func() meta.Object { return &networking.NetworkPolicy{} },
	"rbac.authorization.k8s.io/v1 ClusterRole": func() meta.Object { return &rbac.ClusterRole{} },
	"rbac.authorization.k8s.io/v1 ClusterRoleBinding": func() meta.Object { return &rbac.ClusterRoleBinding{} },
	"scheduling.k8s.io/v1 PriorityClass":              func() meta.Object { return &scheduling.PriorityClass{} },
	"monitoring.coreos.com/v1 PodMonitor":             func() meta.Object { return &monitoring.PodMonitor{} },
	"monitoring.coreos.com/v1 ServiceMonitor":         func() meta.Object { return &monitoring.ServiceMonitor{} },
	"monitoring.coreos.com/v1 PrometheusRule":         func() meta.Object { return &monitoring.PrometheusRule{} },
}

// decode gives the objects of a manifest.
func decode(manifests string) ([]meta.Object, error) {
	var objects []meta.Object
	for _, document := range strings.Split("\n"+manifests, "\n---\n") {
		var kind meta.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			return nil, err
		}
		if kind.Kind == "" {
			continue // Comments alone.
		}
		create, found := kinds[kind.APIVersion+" "+kind.Kind]
		if !found {
			return nil, fmt.Errorf("%s %s: add it to kinds", kind.APIVersion, kind.Kind)
		}
		object := create()
		if err := yaml.UnmarshalStrict([]byte(document), object); err != nil {
			return nil, fmt.Errorf("%s: %w", kind.Kind, err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

func TestRendersAreSound(t *testing.T) {
	for name, one := range renderAll(t) {
		objects, err := decode(one.manifests)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, fault := range faults(objects) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// faults are contradictions between and inside objects, which schemas do not see.
func faults(objects []meta.Object) []string {
	var found []string
	say := func(object meta.Object, format string, arguments ...any) {
		kind := reflect.TypeOf(object).Elem().Name()
		found = append(found, kind+" "+object.GetName()+": "+fmt.Sprintf(format, arguments...))
	}
	seen := map[string]bool{}
	pods := map[meta.Object]*core.PodTemplateSpec{}
	accounts := map[string]bool{}
	for _, object := range objects {
		key := reflect.TypeOf(object).String() + " " + object.GetNamespace() + "/" + object.GetName()
		if seen[key] {
			say(object, "is there twice")
		}
		seen[key] = true
		for _, fault := range metadataFaults(object) {
			say(object, "%s", fault)
		}
		switch object := object.(type) {
		case *apps.DaemonSet:
			pods[object] = &object.Spec.Template
			if !selects(object.Spec.Selector, object.Spec.Template.Labels) {
				say(object, "its selector does not match its pods")
			}
		case *core.Pod:
			pods[object] = &core.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}
		case *core.ServiceAccount:
			accounts[object.Name] = true
		}
	}
	for object, pod := range pods {
		for _, fault := range podFaults(&pod.Spec) {
			say(object, "%s", fault)
		}
		if account := pod.Spec.ServiceAccountName; len(accounts) > 0 && !accounts[account] {
			say(object, "no ServiceAccount %s", account)
		}
	}
	for _, object := range objects {
		for _, fault := range referenceFaults(object, objects, pods) {
			say(object, "%s", fault)
		}
	}
	return found
}

// metadataFaults are names and labels that the API server refuses.
func metadataFaults(object meta.Object) []string {
	found := validation.IsDNS1123Subdomain(object.GetName())
	if _, isService := object.(*core.Service); isService {
		found = append(found, validation.IsDNS1035Label(object.GetName())...)
	}
	labels := []map[string]string{object.GetLabels()}
	if agent, isAgent := object.(*apps.DaemonSet); isAgent {
		labels = append(labels, agent.Spec.Template.Labels)
		// Its revisions have a label of the name, a dash and ten digits.
		found = append(found, validation.IsValidLabelValue(object.GetName()+"-0123456789")...)
	}
	for _, set := range labels {
		for key, value := range set {
			found = append(found, validation.IsQualifiedName(key)...)
			found = append(found, validation.IsValidLabelValue(value)...)
		}
	}
	return found
}

// podFaults looks inside one pod.
func podFaults(pod *core.PodSpec) []string {
	var found []string
	for _, volume := range pod.Volumes {
		found = append(found, validation.IsDNS1123Label(volume.Name)...)
	}
	unmounted := map[string]bool{}
	for _, volume := range pod.Volumes {
		if _, twice := unmounted[volume.Name]; twice {
			found = append(found, "two volumes "+volume.Name)
		}
		unmounted[volume.Name] = true
	}
	for _, container := range append(append([]core.Container{}, pod.InitContainers...), pod.Containers...) {
		paths, names, ports := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, mount := range container.VolumeMounts {
			if _, known := unmounted[mount.Name]; !known {
				found = append(found, "mounts "+mount.Name+", which is no volume")
			}
			unmounted[mount.Name] = false
			if !strings.HasPrefix(mount.MountPath, "/") || paths[mount.MountPath] {
				found = append(found, "mounts at "+mount.MountPath+", relative or twice")
			}
			paths[mount.MountPath] = true
		}
		for _, env := range container.Env {
			if names[env.Name] {
				found = append(found, "sets "+env.Name+" twice")
			}
			names[env.Name] = true
		}
		for _, port := range container.Ports {
			ports[port.Name], ports[strconv.Itoa(int(port.ContainerPort))] = true, true
		}
		for _, probe := range []*core.Probe{container.StartupProbe, container.LivenessProbe, container.ReadinessProbe} {
			if probe != nil && probe.HTTPGet != nil && !ports[probe.HTTPGet.Port.String()] {
				found = append(found, "probes "+probe.HTTPGet.Port.String()+", which is no port")
			}
		}
	}
	for name, left := range unmounted {
		if left {
			found = append(found, "never mounts "+name)
		}
	}
	return found
}
