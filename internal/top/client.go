package top

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hotsniff/hotsniff/internal/export"
	"github.com/hotsniff/hotsniff/internal/report"
)

const (
	// maxAnswer bounds what a daemon may answer: 200 keys of 1 KiB, escaped,
	// are 2 MB.
	maxAnswer = 16 << 20

	// answerTimeout bounds the wait for an answer.
	answerTimeout = 5 * time.Second
)

// Client samples a running daemon through its API.
type Client struct {
	base     *url.URL // without the user
	user     *url.Userinfo
	http     *http.Client
	maxBytes int64
}

// NewClient returns a Client of the daemon at base, as in
// http://host:9379 or https://user:password@host:9379. ca holds the PEM
// certificates of the authorities that are trusted; nil: the system's.
func NewClient(base string, ca []byte) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		var bad *url.Error
		if errors.As(err, &bad) {
			err = bad.Err // without the address: it may hold a password
		}
		return nil, fmt.Errorf("address of the daemon: %w", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("address of the daemon: want http://host:port or https://host:port")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("address of the daemon: want nothing after the path")
	}
	c := &Client{user: u.User, maxBytes: maxAnswer}
	u.User, c.base = nil, u
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if ca != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(ca) {
			return nil, errors.New("no certificate in the file of authorities")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	c.http = &http.Client{Transport: transport, Timeout: answerTimeout}
	return c, nil
}

// Name returns the address without user and password.
func (c *Client) Name() string { return c.base.String() }

// Sample implements Sampler. Its errors name the address without a password.
func (c *Client) Sample(ctx context.Context) (*Sample, error) {
	out := &Sample{Slow: &report.Report{}, Fast: &report.Report{}}
	var status export.Status
	if err := c.get(ctx, "/api/v1/hotkeys?window=60s", report.Schema, out.Slow); err != nil {
		return nil, err
	}
	if err := c.get(ctx, "/api/v1/hotkeys?window=5s", report.Schema, out.Fast); err != nil {
		return nil, err
	}
	if err := c.get(ctx, "/api/v1/status", export.StatusSchema, &status); err != nil {
		return nil, err
	}
	for i := range status.Ports {
		out.Requests += status.Ports[i].Requests
	}
	out.CPURatio = status.CPURatio
	if !status.Healthy {
		out.Warning = "the daemon's capture makes no progress"
	}
	return out, nil
}

// StatusError is an answer of a daemon that is none.
type StatusError struct {
	URL  string
	Code int
}

// Error implements error.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: %d %s", e.URL, e.Code, http.StatusText(e.Code))
}

func (c *Client) get(ctx context.Context, path, schema string, into any) error {
	address := strings.TrimRight(c.base.String(), "/") + path
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if c.user != nil {
		password, _ := c.user.Password()
		req.SetBasicAuth(c.user.Username(), password)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &StatusError{address, resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, c.maxBytes+1))
	if err != nil {
		return err
	}
	var is struct {
		Schema string `json:"schema"`
	}
	if int64(len(body)) > c.maxBytes || json.Unmarshal(body, &is) != nil || is.Schema != schema {
		return fmt.Errorf("%s: the answer is no %s: is this a hotsniff daemon?", address, schema)
	}
	return json.Unmarshal(body, into)
}
