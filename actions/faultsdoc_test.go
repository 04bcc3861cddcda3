package actions

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultsAreThoseOfTheDocument keeps docs/FAULTS.md and the tests in step:
// each row names tests that exist and results that are exported, and each
// test of a fault stands in a row.
func TestFaultsAreThoseOfTheDocument(t *testing.T) {
	exist := make(map[string]bool)
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	for _, pattern := range []string{"*_test.go", "../hotlist/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range declared.FindAllSubmatch(text, -1) {
				exist[string(m[1])] = true
			}
		}
	}
	doc, err := os.ReadFile("../docs/FAULTS.md")
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	rows := 0
	for line := range strings.Lines(string(doc)) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || strings.Contains(line, "---") || strings.TrimSpace(cells[1]) == "fault" {
			continue
		}
		rows++
		tests := strings.Split(strings.TrimSpace(cells[4]), ", ")
		for _, name := range tests {
			named[name] = true
			if !exist[name] {
				t.Errorf("row %q names %q, which does not exist", cells[1], name)
			}
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			if !isResult(m[1]) {
				t.Errorf("row %q names the result %q, which does not exist", cells[1], m[1])
			}
		}
	}
	for name := range exist {
		if strings.HasPrefix(name, "TestFault") && name != t.Name() && !named[name] {
			t.Errorf("%s stands in no row", name)
		}
	}
	if rows < 15 {
		t.Errorf("only %d rows were understood", rows)
	}
}

func isResult(name string) bool {
	for _, n := range resultNames {
		if n == name {
			return true
		}
	}
	return false
}
