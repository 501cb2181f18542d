package checks

import (
	"strings"
	"testing"
)

// Whoever installs it reads all of what comes before the reference.
func TestTheGuideIsShort(t *testing.T) {
	const wordsMax = 400
	guide, reference, found := strings.Cut(read(t, "../../docs/kubernetes.md"), "\n# Reference\n")
	if !found || reference == "" {
		t.Fatal("docs/kubernetes.md has no reference part")
	}
	if words := len(strings.Fields(guide)); words >= wordsMax {
		t.Errorf("docs/kubernetes.md: %d words before the reference, under %d allowed", words, wordsMax)
	}
}
