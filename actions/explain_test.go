package actions

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

func TestExplainHidesThePasswords(t *testing.T) {
	c := &Client{redact: &redactor{}}
	c.redact.add("S3cret-one")
	res, text, _ := c.Explain(errors.New("unknown command HELLO, with args 3 AUTH default S3cret-one"))
	if res != ResultUnreachable || strings.Contains(text, "S3cret") || !strings.Contains(text, "HELLO") {
		t.Errorf("got %v, %q; want the text without the password", res, text)
	}
	if res, _, hint := c.Explain(&fs.PathError{Op: "open", Path: "x", Err: fs.ErrNotExist}); res != ResultAuth || hint == "" {
		t.Errorf("got %v, %q; want a hint at the password file", res, hint)
	}
	if res, text, hint := c.Explain(nil); res != ResultOK || text != "" || hint != "" {
		t.Errorf("got %v, %q, %q for no error", res, text, hint)
	}
}
