package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/hotsniff/hotsniff/internal/config"
)

//go:generate sh -c "cd ../.. && go run ./cmd/hotsniff config-docs > CONFIGURATION.md.new && mv CONFIGURATION.md.new CONFIGURATION.md"

// configDocsCmd is `hotsniff config-docs`, which writes CONFIGURATION.md from
// the flags themselves. It is hidden: the file is what people want.
type configDocsCmd struct{}

// Run implements the command.
func (configDocsCmd) Run(a *app) error {
	return writeConfigDocs(a.out, a.k.Model.Node)
}

const configDocsHead = `# Configuration

Made by ` + "`make generate`" + ` from the flags of ` + "`hotsniff run`" + `. Do not edit.

Every setting is a flag, a key of the YAML file that ` + "`--config.file`" + ` names, and an environment variable. A flag beats the
environment, the environment beats the file, the file beats the default. In the file dots are levels, and both forms are one:

` + "```yaml" + `
web:
  listen-address: [127.0.0.1:9379, "[::1]:9379"]
capture.direction: in
` + "```" + `

The file is strict: an unknown key, a value of the wrong type or out of its range is refused with its line, and nothing starts.
` + "`hotsniff check-config FILE`" + ` says the same without starting: exit code 0 when the file is good, 1 when it is not, 2 when the command
is not understood.

## Reload
SIGHUP and ` + "`POST /-/reload`" + ` read the file again (the answer is 200, or 500 with the reason). Settings marked *live*, rules, pinned and
banned keys change at once, and no window, list or packet is lost by it. Other settings need a restart: the log names those that
changed. A file with a mistake changes nothing: the log names file and line, and ` + "`hotsniff_config_last_reload_successful`" + ` turns 0.
What ` + "`web.config.file`" + ` and password files hold is read anew when it is used, without a reload.

## Settings
`

const configDocsTail = `
## Lists
These stand in the file alone.

` + "```yaml" + `
rules:
  - prefix: "session:"
    name: sessions
    share: 0.05
  - glob: "tmp:*"
    ignore: true
pinned:
  - front-page
  - key: sale
    from: 2026-11-27T08:00:00+01:00
    until: 2026-11-28T00:00:00+01:00
    action: replicate
banned:
  - heartbeat
privacy:
  rewrite:
    - match: "user:[0-9]+"
      to: "user:*"
` + "```" + `
`

// writeConfigDocs writes CONFIGURATION.md. n is the whole command line.
func writeConfigDocs(w io.Writer, n *kong.Node) error {
	var b strings.Builder
	b.WriteString(configDocsHead)
	run := n.Children[slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == "run" })]
	flags := slices.Clone(run.Flags)
	slices.SortFunc(flags, func(x, y *kong.Flag) int {
		// Settings of their own come before those in groups.
		if p, q := strings.Contains(x.Name, "."), strings.Contains(y.Name, "."); p != q {
			return map[bool]int{true: 1, false: -1}[p]
		}
		return strings.Compare(x.Name, y.Name)
	})
	group := "."
	for _, f := range flags {
		if f.Hidden {
			continue
		}
		prefix, _, dotted := strings.Cut(f.Name, ".")
		if !dotted {
			prefix = ""
		}
		if prefix != group {
			group = prefix
			if prefix != "" {
				fmt.Fprintf(&b, "\n### %s\n", prefix)
			}
			b.WriteString("| key | variable | default | range | reload | meaning |\n| --- | --- | --- | --- | --- | --- |\n")
		}
		b.WriteString(configRow(f))
	}
	b.WriteString(configDocsTail)
	writeFields(&b, "rules", config.RuleFields)
	writeFields(&b, "pinned and banned", config.ManualFields)
	b.WriteString("\nAction, ttl and copies are of pinned keys alone. No key may be in these two lists twice.\n")
	writeFields(&b, "privacy.rewrite", config.RewriteFields)
	_, err := io.WriteString(w, b.String())
	return err
}

// configRow is one setting. The flag is its key with two dashes before it.
func configRow(f *kong.Flag) string {
	reload := "restart"
	if slices.Contains(liveKeys, f.Name) {
		reload = "live"
	}
	text := f.Default
	if text == "" && f.IsBool() {
		text = "false"
	}
	if text != "" {
		text = "`" + text + "`"
	}
	want := rangeText(f)
	if want == "" {
		want = typeName(f)
	}
	help := strings.ReplaceAll(f.Help, " ("+f.Enum+")", "") // the range says it
	return fmt.Sprintf("| `%s` | `%s` | %s | %s | %s | %s |\n", f.Name, strings.Join(f.Envs, " "), text, want, reload, strings.ReplaceAll(help, "|", `\|`))
}

func writeFields(b *strings.Builder, of string, fields []config.Field) {
	fmt.Fprintf(b, "\n| field of %s | meaning |\n| --- | --- |\n", of)
	for _, f := range fields {
		fmt.Fprintf(b, "| `%s` | %s |\n", f.Name, f.Help)
	}
}
