package checks

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the next command is has to be found on the first screens.
func TestTheGuidesAreShort(t *testing.T) {
	const wordsMax = 400
	guide, reference, found := strings.Cut(read(t, "../../docs/kubernetes.md"), "\n# Reference\n")
	if !found || reference == "" {
		t.Fatal("docs/kubernetes.md has no reference part")
	}
	guides := map[string]string{"kubernetes.md": guide}
	starts, err := filepath.Glob("../../docs/quick-start-*.md")
	if err != nil || len(starts) < 3 {
		t.Fatalf("docs/ has %d quick starts (%v)", len(starts), err)
	}
	for _, path := range starts {
		guides[filepath.Base(path)] = read(t, path)
	}
	for name, text := range guides {
		if words := len(strings.Fields(text)); words >= wordsMax {
			t.Errorf("docs/%s: %d words, under %d allowed", name, words, wordsMax)
		}
	}
}

// valuesBlock is a values file in a document.
var valuesBlock = regexp.MustCompile("(?ms)^```yaml values\\.yaml\n(.*?)^```$")

// A values file that a document shows is one that the chart takes.
func TestTheChartTakesTheValuesOfTheDocuments(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, path := range append(pages, chartDir+"/README.md") {
		for _, block := range valuesBlock.FindAllStringSubmatch(read(t, path), -1) {
			count++
			if _, err := render(loadChart(t), parseValues(t, block[1]), namespace, kubeVersion); err != nil {
				t.Errorf("%s: %v\n%s", path, err, block[1])
			}
		}
	}
	if count == 0 {
		t.Error("no document has values")
	}
}

// What a guide says of the ledger is in the ledger.
func TestTheGuidesNameRowsOfTheLedger(t *testing.T) {
	_, verify, found := strings.Cut(read(t, "../../docs/kubernetes.md"), "\n## Verify\n")
	verify, _, foundEnd := strings.Cut(verify, "\n## ")
	if !found || !foundEnd {
		t.Fatal("docs/kubernetes.md has no section Verify")
	}
	_, text, _ := strings.Cut(verify, "\n```\n")
	source := read(t, "../../crates/tailrace/src/ledger.rs")
	names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1)
	for _, name := range names {
		if !strings.Contains(source, "\"  "+name[1]+"\"") {
			t.Errorf("docs/kubernetes.md: the ledger has no row `%s`", name[1])
		}
	}
	if len(names) == 0 {
		t.Error("docs/kubernetes.md: Verify names no row of the ledger")
	}
}
