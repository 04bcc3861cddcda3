// Licenses prints the license texts of all modules that are linked into
// hotsniff, and of the C libraries of the static build, and fails when it
// finds one that is not permissive or that it does not know.
//
// Usage: licenses [-static] [-names]
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

func main() {
	static := flag.Bool("static", false, "also the C libraries of the static build")
	names := flag.Bool("names", false, "the names of the licenses, without their texts")
	flag.Parse()
	out := bufio.NewWriter(os.Stdout)
	err := run(out, *static, *names)
	if err := errors.Join(err, out.Flush()); err != nil {
		fmt.Fprintln(os.Stderr, "licenses: "+err.Error())
		os.Exit(1)
	}
}

// part is something that is linked in.
type part struct {
	name, version string
	texts         []string // of its license files
}

func run(w io.Writer, static, names bool) error {
	parts, err := modules()
	if err != nil {
		return err
	}
	if static {
		c, err := libraries()
		if err != nil {
			return err
		}
		parts = append(parts, c...)
	}
	var bad []error
	for _, p := range parts {
		ids, err := identify(p.texts)
		if err != nil {
			bad = append(bad, fmt.Errorf("%s %s: %w", p.name, p.version, err))
		}
		fmt.Fprintf(w, "%s %s: %s\n", p.name, p.version, strings.Join(ids, ", "))
	}
	for _, p := range parts {
		if names {
			break
		}
		fmt.Fprintf(w, "\n%s\n%s %s\n\n", strings.Repeat("=", 79), p.name, p.version)
		fmt.Fprintln(w, strings.TrimSpace(strings.Join(p.texts, "\n\n")))
	}
	return errors.Join(bad...)
}

// modules returns those that the program's packages come from, and Go itself.
func modules() ([]part, error) {
	cmd := exec.Command("go", "list", "-deps", "-json=Module,Standard", "./cmd/hotsniff")
	cmd.Stderr = os.Stderr
	data, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	seen := map[string]part{}
	for dec := json.NewDecoder(strings.NewReader(string(data))); ; {
		var p struct {
			Module *struct {
				Path, Version, Dir string
				Main               bool
			}
		}
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		m := p.Module
		if m == nil || m.Main || seen[m.Path].name != "" {
			continue
		}
		texts, err := licenseFiles(m.Dir)
		if err != nil {
			return nil, err
		}
		seen[m.Path] = part{m.Path, m.Version, texts}
	}
	root, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return nil, err
	}
	env := strings.Fields(string(root))
	if len(env) != 2 {
		return nil, fmt.Errorf("go env: got %q", root)
	}
	texts, err := licenseFiles(env[0])
	if err != nil {
		return nil, err
	}
	all := []part{{"Go standard library", env[1], texts}}
	for _, p := range seen {
		all = append(all, p)
	}
	slices.SortFunc(all[1:], func(a, b part) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice)([.-].*)?$`)

// licenseFiles reads those at the top of a module. Notices belong to them:
// the Apache license asks to pass them on.
func licenseFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, e := range entries {
		if e.IsDir() || !licenseName.MatchString(e.Name()) || strings.HasSuffix(e.Name(), ".go") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(data))
	}
	return texts, nil
}

// libraries returns what scripts/static.sh links.
func libraries() ([]part, error) {
	files, _ := filepath.Glob("build/static/libpcap-*/LICENSE")
	if len(files) != 1 {
		return nil, errors.New("build/static has no source of libpcap: run scripts/static.sh first")
	}
	pcap, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	musl, err := os.ReadFile("packaging/licenses/musl.txt")
	if err != nil {
		return nil, err
	}
	version := strings.TrimPrefix(filepath.Base(filepath.Dir(files[0])), "libpcap-")
	return []part{{"libpcap", version, []string{string(pcap)}}, {"musl", "libc", []string{string(musl)}}}, nil
}
