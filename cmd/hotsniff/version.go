package main

import (
	"fmt"
	"runtime"

	"github.com/prometheus/common/version"
)

// versionCmd is `hotsniff version`.
type versionCmd struct{}

// Run implements the command.
func (versionCmd) Run(a *app) error {
	_, err := fmt.Fprintf(a.out, "hotsniff %s (revision %s, %s, %s/%s)\n",
		versionText(), version.GetRevision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
