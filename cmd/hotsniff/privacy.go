package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/hotsniff/hotsniff/internal/pipeline"
	"github.com/hotsniff/hotsniff/internal/privacy"
)

// privacyFlags say how much of key names and client addresses is shown.
type privacyFlags struct {
	PrivacyKeys    string   `name:"privacy.keys" default:"plain" enum:"plain,pattern,hash,truncate" help:"How keys are shown in metrics, logs, reports, API and page: as they are, with numbers, identifiers and addresses as *, as a keyed hash, or by their first characters (${enum})."`
	PrivacyKeyFile string   `name:"privacy.key-file" type:"path" placeholder:"FILE" help:"File with the secret of --privacy.keys=hash, at least 16 bytes. The same secret gives the same hashes on every node."`
	PrivacyKeep    int      `name:"privacy.keep" default:"8" min:"1" max:"128" help:"Characters that --privacy.keys=truncate keeps."`
	PrivacyDeny    []string `name:"privacy.deny" placeholder:"GLOB" help:"Keys of which nothing is shown or published: they appear together as (hidden)."`
	PrivacyClients string   `name:"privacy.clients" default:"plain" enum:"plain,network,none" help:"How client addresses are shown: as they are, only the network (/24, /48), or not at all (${enum})."`
}

// maxSecretBytes bounds the secret: the path could name a device.
const maxSecretBytes = 4096

// masker returns what stands between names and whoever looks; nil when
// everything is shown.
func (f *privacyFlags) masker(a *app) (pipeline.Masker, error) {
	cfg := privacy.Config{
		Keys: privacy.Mode(slices.Index(privacy.Modes, f.PrivacyKeys)), Keep: f.PrivacyKeep, Deny: f.PrivacyDeny,
		Clients: privacy.ClientMode(slices.Index(privacy.ClientModes, f.PrivacyClients)),
	}
	for _, r := range a.file.Rewrites() {
		cfg.Rewrites = append(cfg.Rewrites, privacy.Rewrite{Match: r.Match, To: r.To})
	}
	if cfg.Keys == privacy.Hash {
		var err error
		if cfg.Secret, err = f.secret(); err != nil {
			return nil, cmp.Or(a.inFile("privacy.keys", err), err)
		}
	}
	p, err := privacy.New(cfg)
	if err != nil {
		return nil, cmp.Or[error](a.inFile("privacy.keys", err), usageError{fmt.Errorf("--privacy.keys=%s: %w", f.PrivacyKeys, err)})
	}
	if p == nil {
		return nil, nil
	}
	return p, nil
}

func (f *privacyFlags) secret() ([]byte, error) {
	if f.PrivacyKeyFile == "" {
		return nil, withHint(usageError{errors.New("--privacy.keys=hash needs --privacy.key-file")},
			"make one, the same for all nodes: head -c 32 /dev/urandom > privacy.key")
	}
	file, err := os.Open(f.PrivacyKeyFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	secret, err := io.ReadAll(io.LimitReader(file, maxSecretBytes))
	if err != nil {
		return nil, err
	}
	return secret, nil
}

// mask puts the masker between the engine and everything that shows what it
// found. The channel has a switch of its own: subscribers need true names.
func (c *runCmd) mask(a *app, d *daemon) error {
	d.shown, d.listed = d.engine.Latest, d.engine.Latest
	m, err := c.masker(a)
	if err != nil || m == nil {
		return err
	}
	d.masker = m
	d.shown = pipeline.MaskLatest(d.engine.Latest, m)
	if c.MaskList || len(c.PrivacyDeny) > 0 {
		d.listed = pipeline.MaskLatest(d.engine.Latest, listMasker{m.(*privacy.Policy), c.MaskList})
	}
	return nil
}

// listMasker leaves denied keys out of what is published and, if asked, masks
// the others.
type listMasker struct {
	policy *privacy.Policy
	masked bool
}

// Key implements pipeline.Masker.
func (l listMasker) Key(key []byte) (string, bool) {
	if l.policy.Denied(key) {
		return "", false
	}
	if l.masked {
		return l.policy.Key(key)
	}
	return string(key), true
}

// Client implements pipeline.Masker. Lists hold no addresses.
func (l listMasker) Client(address [16]byte) ([16]byte, bool) { return address, true }
