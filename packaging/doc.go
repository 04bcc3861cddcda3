// Package packaging holds what is around the program: the systemd unit, the
// default configuration, what the packages contain, the image and the
// Kubernetes examples. It has no code; its tests hold these files together.
package packaging
