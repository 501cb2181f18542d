package checks

import (
	"strings"
	"testing"
)

// What looks wrong and may be right is said after the installation, and nothing else is.
func TestNotesWarn(t *testing.T) {
	const noTLS, otherPort, noLimit = "without TLS", "port of the other protocol", "without resources.limits.memory"
	cases := map[string][]string{
		`otlp: {endpoint: "http://collector:4318"}`:                              nil,
		`otlp: {endpoint: "http://otel.monitoring:4318"}`:                        nil,
		`otlp: {endpoint: "http://otel.monitoring.svc:4318"}`:                    nil,
		`otlp: {endpoint: "http://otel.monitoring.svc.cluster.local:4318"}`:      nil,
		`otlp: {endpoint: "https://otel.example.com"}`:                           nil,
		`otlp: {endpoint: "${ENDPOINT}"}`:                                        nil,
		`otlp: {endpoint: "http://otel.example.com"}`:                            {noTLS},
		`otlp: {endpoint: "http://10.0.0.1:4318"}`:                               {noTLS},
		`otlp: {endpoint: "http://collector:4317"}`:                              {otherPort},
		`otlp: {endpoint: "http://collector:4318/", protocol: grpc}`:             {otherPort},
		`otlp: {endpoint: "http://collector:4317", protocol: grpc}`:              nil,
		`{otlp: {endpoint: "http://collector:4318"}, resources: {limits: null}}`: {noLimit},
	}
	loaded := loadChart(t)
	for values, warnings := range cases {
		one, err := render(loaded, parseValues(t, values), namespace, kubeVersion)
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		if found := strings.Count(one.notes, "WARNING"); found != len(warnings) {
			t.Errorf("%s: %d warnings, expected %q:\n%s", values, found, warnings, one.notes)
		}
		for _, warning := range warnings {
			if !strings.Contains(one.notes, warning) {
				t.Errorf("%s: not warned of %q", values, warning)
			}
		}
	}
}
