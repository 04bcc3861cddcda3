//go:build cgo

package capture

import "errors"

// OpenLive is not there yet.
func OpenLive(LiveConfig) (Source, error) { return nil, errors.New("capture: live capture follows") }
