package testkit

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hotsniff/hotsniff/"

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath, Name  string
	Imports, Deps     []string
	GoFiles, CgoFiles []string
}

// list returns the packages of the module by their path below it.
func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Name,Imports,Deps,GoFiles,CgoFiles", "./...")
	cmd.Dir = Root()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	all := map[string]pkg{}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := dec.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
	if len(all) < 5 {
		t.Fatalf("go list found %d packages only", len(all))
	}
	return all
}

// TestCorePackagesStandAlone keeps the seams where they are: whoever wants to
// join two core packages does it in internal/pipeline.
func TestCorePackagesStandAlone(t *testing.T) {
	core := []string{"capture", "resp", "topk", "actions"}
	all := list(t)
	for _, name := range core {
		p, ok := all[name]
		if !ok {
			t.Errorf("package %s is missing", name)
		}
		for _, dep := range p.Deps {
			dep = strings.TrimPrefix(dep, module)
			if slices.Contains(core, dep) {
				t.Errorf("%s depends on %s", name, dep)
			}
			if strings.HasPrefix(dep, "internal/") && all[dep].Name != "" {
				t.Errorf("%s depends on %s: imports point from internal to the core", name, dep)
			}
		}
	}
	for _, p := range all {
		joined := 0
		for _, imp := range p.Imports {
			if slices.Contains([]string{"capture", "resp", "topk"}, strings.TrimPrefix(imp, module)) {
				joined++
			}
		}
		// The command only fills in configurations.
		if joined > 1 && p.ImportPath != module+"internal/pipeline" && p.ImportPath != module+"cmd/hotsniff" {
			t.Errorf("%s joins %d core packages: only internal/pipeline does", p.ImportPath, joined)
		}
	}
}

// TestApplicationsImportLittle keeps hotlist light: an application that reads
// the list gets no libpcap, no cgo, no detector and no Prometheus.
func TestApplicationsImportLittle(t *testing.T) {
	p, ok := list(t)["hotlist"]
	if !ok {
		t.Fatal("package hotlist is missing")
	}
	for _, dep := range p.Deps {
		for _, bad := range []string{module + "capture", module + "resp", module + "topk", module + "actions", module + "internal",
			"github.com/google/gopacket", "github.com/axiomhq", "github.com/prometheus"} {
			if strings.HasPrefix(dep, bad) {
				t.Errorf("hotlist depends on %s", dep)
			}
		}
	}
}

// TestOneFileUsesCgo: everything but live capture builds without a C compiler.
func TestOneFileUsesCgo(t *testing.T) {
	var files []string
	for path, p := range list(t) {
		for _, f := range p.CgoFiles {
			files = append(files, path+"/"+f)
		}
		for _, imp := range p.Imports {
			if imp == "github.com/google/gopacket/pcap" {
				files = append(files, path+" through gopacket/pcap")
			}
		}
	}
	if len(files) != 1 || !strings.HasPrefix(files[0], "capture") {
		t.Errorf("got cgo in %v; want it in capture alone", files)
	}
}

// TestNoSecondReassembly: gopacket's tcpassembly and reassembly register the
// same global flags and panic at start when both are linked; the binary has
// neither.
func TestNoSecondReassembly(t *testing.T) {
	for _, dep := range list(t)["cmd/hotsniff"].Deps {
		for _, bad := range []string{"gopacket/tcpassembly", "gopacket/reassembly"} {
			if strings.Contains(dep, bad) {
				t.Errorf("cmd/hotsniff links %s", dep)
			}
		}
	}
}
