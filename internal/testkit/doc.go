// Package testkit is what tests, the demo and the benchmark share: a real
// redis-server on a free loopback port, a load whose truth is known, and the
// corpus of captures with their truth files. Nothing of it is in the binary.
package testkit
