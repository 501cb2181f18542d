module tailrace/deploy/checks

go 1.26.0

require (
	github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring v0.95.1 // indirect
	helm.sh/helm/v3 v3.22.0 // indirect
	k8s.io/pod-security-admission v0.37.0 // indirect
)
