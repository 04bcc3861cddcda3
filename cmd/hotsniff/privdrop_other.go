//go:build !linux

package main

// confineCapture has nothing to give up here: there are no capabilities.
func confineCapture(lowPorts bool) error { return nil }
