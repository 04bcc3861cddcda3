//go:build !linux

package main

// unmapProgram does nothing: other systems count program pages otherwise.
func unmapProgram() {}
