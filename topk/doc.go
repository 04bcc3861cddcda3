// Package topk finds hot keys: the keys that take an outsized share of the
// accesses of one Redis port, with the error of every number.
package topk
