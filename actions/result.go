package actions

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io/fs"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Result is how an attempt to send something to Redis ended. It is the label
// of hotsniff_publish_total.
type Result uint8

// The results. NumResults is their number.
const (
	ResultOK          Result = iota
	ResultTimeout            // no answer in time: stopped, paused or overloaded server
	ResultUnreachable        // no connection, or one that broke
	ResultTLS                // the handshake failed, for instance an expired certificate
	ResultAuth               // NOAUTH, WRONGPASS, or the password file cannot be read
	ResultDenied             // NOPERM: the ACL user lacks a right
	ResultFull               // OOM: memory is full and nothing may be evicted
	ResultReadOnly           // a replica, or too few replicas to accept writes
	ResultLoading            // the server reads its data from disk, or waits for its master
	ResultCluster            // CLUSTERDOWN, MOVED too often
	ResultOther
	NumResults
)

var resultNames = [NumResults]string{
	"ok", "timeout", "unreachable", "tls", "auth", "denied", "full", "read_only", "loading", "cluster", "other",
}

// String returns the label value.
func (r Result) String() string {
	if r < NumResults {
		return resultNames[r]
	}
	return resultNames[ResultOther]
}

// hint says what to look at; empty where the error says it all.
func (r Result) hint() string {
	switch r {
	case ResultAuth:
		return "check the user and the password file"
	case ResultDenied:
		return "grant the rights that docs/PROTOCOL.md lists"
	case ResultFull:
		return "raise maxmemory; messages still go out, late subscribers wait for the next one"
	case ResultReadOnly:
		return "point at the primary, or use sentinel_master or cluster"
	}
	return ""
}

// lost reports whether the connection, rather than the server's answer, was
// the problem; further commands would only wait for the same timeout.
func (r Result) lost() bool {
	return r == ResultTimeout || r == ResultUnreachable || r == ResultTLS || r == ResultAuth
}

// prefixes of error replies, by the first word.
var replyResults = map[string]Result{
	"NOAUTH": ResultAuth, "WRONGPASS": ResultAuth, "NOPERM": ResultDenied, "OOM": ResultFull,
	"READONLY": ResultReadOnly, "NOREPLICAS": ResultReadOnly, "MISCONF": ResultFull,
	"LOADING": ResultLoading, "MASTERDOWN": ResultLoading,
	"CLUSTERDOWN": ResultCluster, "MOVED": ResultCluster, "ASK": ResultCluster, "TRYAGAIN": ResultCluster, "CROSSSLOT": ResultCluster,
}

// classify names the result for an error of go-redis.
func classify(err error) Result {
	if err == nil {
		return ResultOK
	}
	var reply redis.Error
	if errors.As(err, &reply) {
		word, _, _ := strings.Cut(reply.Error(), " ")
		if r, ok := replyResults[word]; ok {
			return r
		}
		if strings.HasPrefix(reply.Error(), "ERR AUTH") || strings.HasPrefix(reply.Error(), "ERR invalid password") {
			return ResultAuth // Redis before 6
		}
		return ResultOther
	}
	var file *fs.PathError
	var netErr net.Error
	switch {
	case errors.As(err, &file), errors.Is(err, errPasswordFile):
		return ResultAuth
	case isTLS(err):
		return ResultTLS
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout),
		errors.As(err, &netErr) && netErr.Timeout():
		return ResultTimeout
	}
	return ResultUnreachable
}

func isTLS(err error) bool {
	var verify *tls.CertificateVerificationError
	var alert tls.AlertError
	var record tls.RecordHeaderError
	var invalid x509.CertificateInvalidError
	var remote *net.OpError
	return errors.As(err, &verify) || errors.As(err, &alert) || errors.As(err, &record) || errors.As(err, &invalid) ||
		errors.As(err, &remote) && remote.Op == "remote error" // an alert that the server sent
}
