package actions

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Connection says how to reach the Redis that carries the list. It holds no
// password: that comes from a file, which is read again for each new
// connection, so that a changed password needs no restart.
type Connection struct {
	// URL is redis://[user@]host[:port][/db], rediss://... for TLS, or
	// unix:///path/to/socket[?db=n]. A password in it is refused.
	URL string
	// Addrs are further addresses host:port: seeds of a cluster, or the
	// sentinels when SentinelMaster is set. The host of URL is one of them.
	Addrs []string
	// Cluster says that the servers form a Redis Cluster.
	Cluster bool
	// SentinelMaster is the name of the master that the sentinels watch.
	SentinelMaster string

	Username             string // ACL user; overrides the one in URL
	PasswordFile         string // path; one trailing line feed is cut
	SentinelUsername     string
	SentinelPasswordFile string // read once, at Connect

	TLS TLSFiles

	// Timeout bounds connecting, reading and writing, each; 1 s by default.
	Timeout time.Duration
}

// TLSFiles configures TLS for rediss:// URLs. All are optional.
type TLSFiles struct {
	CAFile     string // PEM; the system's roots when empty
	CertFile   string // client certificate, PEM, together with KeyFile
	KeyFile    string
	ServerName string // name in the server's certificate; default: the host
}

const (
	defaultTimeout = time.Second
	defaultPort    = "6379"
	sentinelPort   = "26379"
	// maxPasswordBytes: longer than any password; a wrong path such as a
	// device or a log must not fill the memory.
	maxPasswordBytes = 64 << 10
)

// Client is a connection pool that knows its own ends of its connections.
type Client struct {
	redis.UniversalClient
	conns *localAddrs
	// redact hides the passwords in texts that may echo them.
	redact *redactor

	user, passwordFile string
}

// credentials reads the password again for each connection.
func (c *Client) credentials(context.Context) (user, password string, err error) {
	if c.passwordFile == "" {
		return c.user, "", nil
	}
	password, err = readPassword(c.passwordFile)
	c.redact.add(password)
	return c.user, password, err
}

// LocalAddrs returns the local ends of the connections that are open now, so
// that capture can leave them out. The slice is shared and must not be
// changed; it is the same slice until a connection opens or closes. Safe for
// any goroutine, one atomic load.
func (c *Client) LocalAddrs() []netip.AddrPort { return c.conns.load() }

// Connect prepares a client; nothing is dialed before the first command, so a
// server that is down is no error. Errors name what is wrong with the
// settings and never hold a password or the URL.
func Connect(cfg Connection) (*Client, error) {
	opt, err := universal(cfg)
	if err != nil {
		return nil, err
	}
	c := &Client{conns: &localAddrs{}, redact: &redactor{}}
	opt.Dialer = c.conns.dialer(opt.Dialer, opt.TLSConfig)
	c.user, c.passwordFile = opt.Username, cfg.PasswordFile
	opt.CredentialsProviderContext = c.credentials
	if cfg.SentinelPasswordFile != "" {
		if opt.SentinelPassword, err = readPassword(cfg.SentinelPasswordFile); err != nil {
			return nil, err
		}
		c.redact.add(opt.SentinelPassword)
	}
	if cfg.PasswordFile != "" { // say now what would otherwise be found out at the first list
		if _, err := readPassword(cfg.PasswordFile); err != nil {
			return nil, err
		}
	}
	c.UniversalClient = redis.NewUniversalClient(opt)
	return c, nil
}

func universal(cfg Connection) (*redis.UniversalOptions, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = defaultTimeout
	}
	opt := &redis.UniversalOptions{
		MasterName:       cfg.SentinelMaster,
		SentinelUsername: cfg.SentinelUsername,
		IsClusterMode:    cfg.Cluster,
		// CLIENT SETINFO and CLIENT MAINT_NOTIFICATIONS need rights that the
		// least ACL does not give, and fill the server's ACL log.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		Protocol:                 2,
		// The publisher has a backoff of its own; the client must not
		// multiply it, nor hold a list back while it retries.
		MaxRetries:            -1,
		DialerRetries:         1,
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,
		ContextTimeoutEnabled: true,
		// One for commands; subscriptions do not count. Cluster: for each node.
		PoolSize:         2,
		PipelinePoolSize: -1,
	}
	if cfg.Cluster {
		opt.MaxRedirects = 3 // MOVED is an answer, not a failure
	}
	if err := parseURL(cfg, opt); err != nil {
		return nil, err
	}
	if cfg.Username != "" {
		opt.Username = cfg.Username
	}
	port := defaultPort
	if cfg.SentinelMaster != "" {
		port = sentinelPort
	}
	for _, a := range cfg.Addrs {
		if _, _, err := net.SplitHostPort(a); err != nil {
			a = net.JoinHostPort(strings.Trim(a, "[]"), port)
		}
		opt.Addrs = append(opt.Addrs, a)
	}
	if len(opt.Addrs) == 0 {
		return nil, errors.New("redis: no address: set a url or addresses")
	}
	if cfg.SentinelMaster == "" && !cfg.Cluster && len(opt.Addrs) > 1 {
		return nil, errors.New("redis: several addresses need cluster or sentinel_master")
	}
	if cfg.Cluster && opt.DB != 0 {
		return nil, errors.New("redis: a cluster has only database 0")
	}
	return opt, nil
}

// parseURL fills address, user, database and TLS from cfg. It does not pass on
// what net/url says, which quotes the URL with everything in it.
func parseURL(cfg Connection, opt *redis.UniversalOptions) error {
	if cfg.URL == "" {
		return nil
	}
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return errors.New("redis url: not a URL; want redis://[user@]host[:port][/db]")
	}
	if _, has := u.User.Password(); has {
		return errors.New("redis url: must not hold a password, which others could read; use a password file")
	}
	opt.Username = u.User.Username()
	db := strings.Trim(u.Path, "/")
	switch u.Scheme {
	case "redis", "rediss":
		port := u.Port()
		if port == "" {
			port = defaultPort
			if cfg.SentinelMaster != "" {
				port = sentinelPort
			}
		}
		if u.Hostname() == "" {
			return errors.New("redis url: no host")
		}
		opt.Addrs = []string{net.JoinHostPort(u.Hostname(), port)}
	case "unix":
		if u.Path == "" {
			return errors.New("redis url: no socket path; want unix:///path")
		}
		opt.Addrs = []string{u.Path}
		opt.Dialer = dialUnix
		db = u.Query().Get("db")
	default:
		return errors.New("redis url: scheme must be redis, rediss or unix")
	}
	if db != "" {
		if opt.DB, err = strconv.Atoi(db); err != nil || opt.DB < 0 {
			return errors.New("redis url: database must be a number")
		}
	}
	if u.Scheme == "rediss" {
		opt.TLSConfig, err = cfg.TLS.config()
	} else if cfg.TLS != (TLSFiles{}) {
		err = errors.New("redis url: TLS files are set, so the scheme must be rediss")
	}
	return err
}

func dialUnix(ctx context.Context, _, addr string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", addr)
}

func (f TLSFiles) config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: f.ServerName}
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, fmt.Errorf("redis tls ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("redis tls ca: no certificate in %s", f.CAFile)
		}
	}
	if f.CertFile != "" || f.KeyFile != "" {
		if _, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile); err != nil {
			return nil, fmt.Errorf("redis tls certificate: %w", err)
		}
		// Read again for each connection: certificates are renewed more
		// often than daemons are restarted.
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
			return &pair, err
		}
	}
	return c, nil
}

var errPasswordFile = errors.New("redis password file")

func readPassword(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPasswordFile, err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPasswordBytes+1))
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPasswordFile, err)
	}
	pw := strings.TrimSuffix(strings.TrimSuffix(string(b), "\n"), "\r")
	switch {
	case len(b) > maxPasswordBytes:
		return "", fmt.Errorf("%w: %s is too large", errPasswordFile, path)
	case pw == "":
		return "", fmt.Errorf("%w: %s is empty", errPasswordFile, path)
	}
	return pw, nil
}
