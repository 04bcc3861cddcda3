package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/hotsniff/hotsniff/capture"
)

// versionCmd is `hotsniff version`.
type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.out, "hotsniff %s (%s, %s/%s, %s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH,
		capture.LibpcapVersion())
	return err
}

// versionText is what the build recorded of itself: the module's version, or
// the revision of a build from a checkout.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version, revision, dirty := strings.TrimPrefix(info.Main.Version, "v"), "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if version == "" || version == "(devel)" {
		version = "devel"
	}
	if revision != "" && !strings.Contains(version, revision) {
		version += "+" + revision + dirty
	}
	return version
}
