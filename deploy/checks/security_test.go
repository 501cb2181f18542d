package checks

import (
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// What the Pod Security levels forbid in the agent's pod, where a set of values does not say otherwise.
const (
	byBaseline   = "hostPath volumes"
	byRestricted = "restricted volume types, runAsNonRoot != true, runAsUser=0"
)

// levels holds the sets for which it is more or less, as baseline and restricted.
var levels = map[string][2]string{
	// Not all host logs are root's, so that it takes a capability to read them.
	"host-logs":        {byBaseline + ", non-default capabilities", byRestricted + ", unrestricted capabilities"},
	"pods-and-host":    {byBaseline + ", non-default capabilities", byRestricted + ", unrestricted capabilities"},
	"selinux":          {byBaseline + ", seLinuxOptions", byRestricted + ", seLinuxOptions"},
	"nonroot-prepared": {byBaseline, "restricted volume types"},
	// The init container is root's.
	"nonroot":       {byBaseline, byRestricted + ", unrestricted capabilities"},
	"host-loopback": {"host namespaces, " + byBaseline + ", probe or lifecycle host", "host namespaces, probe or lifecycle host, " + byRestricted},
	"host-network":  {"host namespaces, " + byBaseline, "host namespaces, " + byRestricted},
	"security-custom": {byBaseline + ", privileged", "allowPrivilegeEscalation != false, privileged, " + byRestricted +
		", seccompProfile, unrestricted capabilities"},
}

func TestPodSecurityLevels(t *testing.T) {
	forbids := evaluator(t)
	for name, one := range renderAll(t) {
		objects, err := decode(one.manifests)
		if err != nil {
			t.Fatal(err)
		}
		want, found := levels[name]
		if !found {
			want = [2]string{byBaseline, byRestricted}
		}
		for _, object := range objects {
			switch object := object.(type) {
			case *core.Pod:
				if reasons := forbids(api.LevelRestricted, &object.Spec); reasons != "" {
					t.Errorf("%s: the test's pod must be allowed everywhere: %s", name, reasons)
				}
			case *apps.DaemonSet:
				for index, level := range []api.Level{api.LevelBaseline, api.LevelRestricted} {
					if reasons := forbids(level, &object.Spec.Template.Spec); reasons != want[index] {
						t.Errorf("%s: %s forbids\n  %s\nexpected\n  %s", name, level, reasons, want[index])
					}
				}
			}
		}
	}
}

// evaluator gives a function that names, in order, what a level forbids in a pod.
func evaluator(t *testing.T) func(api.Level, *core.PodSpec) string {
	t.Helper()
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func(level api.Level, pod *core.PodSpec) string {
		latest := api.LevelVersion{Level: level, Version: api.LatestVersion()}
		var reasons []string
		for _, result := range checks.EvaluatePod(latest, &meta.ObjectMeta{}, pod) {
			if !result.Allowed {
				reasons = append(reasons, result.ForbiddenReason)
			}
		}
		return strings.Join(sorted(reasons), ", ")
	}
}

// The agent's token can do three things with pods, or one with its node's; without a preset that asks there is none.
func TestPermissions(t *testing.T) {
	const pods, node = "pods: get list watch", "nodes/pods: get"
	want := map[string][]string{
		"path-metadata": nil, "host-logs": nil, "no-rbac": nil,
		"kubelet-metadata": {node}, "network-policy-kubelet": {node},
	}
	for name, one := range renderAll(t) {
		objects, err := decode(one.manifests)
		if err != nil {
			t.Fatal(err)
		}
		rules, hasToken := []string(nil), false
		for _, object := range objects {
			switch object := object.(type) {
			case *rbac.ClusterRole:
				rules = append(rules, ruleTexts(object.Rules)...)
			case *apps.DaemonSet:
				hasToken = *object.Spec.Template.Spec.AutomountServiceAccountToken
			}
		}
		expected, found := want[name]
		if !found {
			expected = []string{pods}
		}
		if !slices.Equal(rules, expected) {
			t.Errorf("%s: %q, expected %q", name, rules, expected)
		}
		if wantsToken := len(expected) > 0 || name == "no-rbac"; hasToken != wantsToken {
			t.Errorf("%s: token %t, expected %t", name, hasToken, wantsToken)
		}
	}
}

func ruleTexts(rules []rbac.PolicyRule) []string {
	var texts []string
	for _, rule := range rules {
		text := strings.Join(rule.APIGroups, " ") + strings.Join(rule.Resources, " ") + ": " + strings.Join(rule.Verbs, " ")
		texts = append(texts, text)
	}
	return texts
}
