package testkit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Truth is what a capture holds, from the file NAME.truth.json beside it.
type Truth struct {
	Counts          // exact captures
	Full    *Counts `json:"full"`        // damaged captures: what was sent
	Visible *Counts `json:"key_visible"` // damaged captures: what any decoder can see at most

	Ports         []uint16 `json:"ports"`
	MustNotAppear []string `json:"must_not_appear"`    // a trailing * means any suffix
	TolerateRange []int    `json:"tolerated_requests"` // least and most requests that a right decoder counts
	KeysCut       int      `json:"keys_truncated_to"`  // Keys holds only so many, 0: all
	Note          string   `json:"note"`
}

// Counts are the figures of a truth file that hotsniff must reproduce.
type Counts struct {
	Requests     int            `json:"requests"`
	KeyAccesses  int            `json:"key_accesses"`
	Unknown      int            `json:"unknown_commands"`
	DistinctKeys int            `json:"distinct_keys"`
	Commands     map[string]int `json:"commands"`
	Keys         map[string]int `json:"keys"`
}

// Capture is one capture file of the corpus.
type Capture struct {
	Name  string // file name
	Path  string
	Truth Truth
}

// Root returns the top directory of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Corpus returns every capture with a truth file, sorted by name: those in
// testdata/captures, which are part of the source, and those in the folder
// shared/captures beside the tree where that exists; a name that is in both
// is taken from the larger collection.
func Corpus() ([]Capture, error) {
	dirs := []string{
		filepath.Join(Root(), "..", "shared", "captures"),
		filepath.Join(Root(), "testdata", "captures"),
	}
	var all []Capture
	for _, dir := range dirs {
		truths, err := filepath.Glob(filepath.Join(dir, "*.truth.json"))
		if err != nil {
			return nil, err
		}
		for _, path := range truths {
			c := Capture{Path: strings.TrimSuffix(path, ".truth.json")}
			c.Name = filepath.Base(c.Path)
			if slices.ContainsFunc(all, func(o Capture) bool { return o.Name == c.Name }) {
				continue
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if err := json.Unmarshal(data, &c.Truth); err != nil {
				return nil, err
			}
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Capture) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}
