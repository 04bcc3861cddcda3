package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/alecthomas/kong"
)

// manCmd is `hotsniff man`, which the packages are built with: it prints the
// manual page, made from the flags themselves.
type manCmd struct{}

// Run implements the command.
func (manCmd) Run(a *app, k *kong.Context) error {
	var b strings.Builder
	writeMan(&b, k.Model.Node)
	_, err := io.WriteString(a.out, b.String())
	return err
}

// writeMan writes the page in the macros of man(7). It has no date: the same
// program gives the same page.
func writeMan(w io.Writer, root *kong.Node) {
	fmt.Fprintf(w, ".TH HOTSNIFF 8 \"\" \"hotsniff %s\" \"System Administration\"\n", manText(versionText()))
	fmt.Fprintf(w, ".SH NAME\nhotsniff \\- find the hot keys of a Redis server from its packets\n")
	fmt.Fprint(w, ".SH SYNOPSIS\n.B hotsniff\n.I COMMAND\n.RI [ FLAGS ]\n")
	fmt.Fprintf(w, ".SH DESCRIPTION\n%s\n.PP\n", manText(root.Help))
	fmt.Fprint(w, manText("Every flag of a command may also stand in the file of --config.file, as a key in which dots are levels, "+
		"and in a variable of the environment, named beside it below. The command line beats the environment, which beats the file."), "\n")
	fmt.Fprint(w, ".SH GLOBAL FLAGS\n")
	manFlags(w, root)
	fmt.Fprint(w, ".SH COMMANDS\n")
	for _, c := range commandsOf(root) {
		fmt.Fprintf(w, ".SS hotsniff %s", manText(c.Name))
		for _, p := range c.Positional {
			fmt.Fprintf(w, " %s", manText(p.Summary()))
		}
		fmt.Fprintf(w, "\n%s\n", manText(c.Help))
		for _, p := range c.Positional {
			if p.Help != "" {
				fmt.Fprintf(w, ".TP\n.I %s\n%s\n", manText(strings.ToUpper(p.Name)), manText(p.Help))
			}
		}
		manFlags(w, c)
	}
	fmt.Fprint(w, manEnd)
}

const manEnd = `.SH SIGNALS
.TP
.BR SIGTERM ", " SIGINT
The daemon publishes an empty list and ends within two seconds.
.TP
.B SIGHUP
The daemon reads its configuration again.
.SH EXIT STATUS
0, 1 for a failure, 2 for wrong usage. Standard error says what was wrong, and what to do.
.SH FILES
.TP
.I /etc/hotsniff/hotsniff.yml
The configuration that the service reads.
.TP
.I /etc/default/hotsniff
Variables for the service.
.TP
.I /etc/credstore/hotsniff.redis-password
The password of the Redis that carries the list, if it has one.
.TP
.I /usr/share/hotsniff/
A Grafana dashboard and rules for Prometheus.
.SH CAPABILITIES
Capturing takes CAP_NET_RAW. The daemon gives up every other capability when it starts.
.SH SEE ALSO
.BR redis\-server (1),
.BR tcpdump (8),
.BR capabilities (7)
`

func manFlags(w io.Writer, n *kong.Node) {
	for _, f := range flagsOf(n) {
		fmt.Fprintf(w, ".TP\n.B %s", manText("--"+f.Name))
		if !f.IsBool() {
			fmt.Fprintf(w, "=\\fI%s\\fR", manText(strings.Trim(f.FormatPlaceHolder(), `"`)))
		}
		fmt.Fprintf(w, "\n%s\n", manText(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(w, ".br\nVariable: %s\n", manText(strings.Join(f.Envs, ", ")))
		}
	}
}

// manText makes s plain text for the formatter.
func manText(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}
