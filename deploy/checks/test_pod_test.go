package checks

import (
	"net/netip"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// The address that `helm test` asks is one, of whichever family the Service is; the kubelet gives it without brackets.
func TestTheTestsPodAsksAnAddress(t *testing.T) {
	const four, six = "10.96.0.7", "fd00:10:96::7"
	const anyFour, anySix = "0.0.0.0:9464", "[::]:9464"
	cases := []struct{ listen, installed, address string }{
		{anyFour, "", four},
		{anySix, "", six},
		// Two families: what the cluster has chosen is known once the Service is there.
		{anySix, four, four},
		{anySix, six, six},
		{anyFour, six, six},
	}
	for _, test := range cases {
		installed := ""
		if test.installed != "" {
			installed = "apiVersion: v1\nkind: Service\nmetadata: {name: my-tailrace}\nspec: {clusterIP: \"" + test.installed + "\"}\n"
		}
		values := parseValues(t, endpointValue+"admin: {listen: \""+test.listen+"\"}\n")
		objects, err := decode(upgraded(t, "tests/test.yaml", values, "my-tailrace", installed))
		if err != nil {
			t.Fatal(err)
		}
		arguments := objects[len(objects)-1].(*core.Pod).Spec.Containers[0].Args
		have := strings.ReplaceAll(arguments[len(arguments)-1], "$(MY_TAILRACE_SERVICE_HOST)", test.address)
		want := netip.AddrPortFrom(netip.MustParseAddr(test.address), 9464)
		if address, err := netip.ParseAddrPort(have); err != nil || address != want {
			t.Errorf("listen %s, Service %q: asks %s (%v), expected %s", test.listen, test.installed, have, err, want)
		}
	}
}
