package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// completionCmd is `hotsniff completion`: the script is made from the flags
// themselves, so it cannot lag behind.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"Shell to complete for (${enum})."`
}

// Run implements the command.
func (c *completionCmd) Run(a *app, k *kong.Context) error {
	write := map[string]func(io.Writer, *kong.Node){"bash": writeBash, "zsh": writeZsh, "fish": writeFish}[c.Shell]
	var b strings.Builder
	write(&b, k.Model.Node)
	_, err := io.WriteString(a.out, b.String())
	return err
}

// commandsOf lists the commands that --help lists.
func commandsOf(n *kong.Node) []*kong.Node {
	return slices.DeleteFunc(slices.Clone(n.Children), func(c *kong.Node) bool { return c.Hidden })
}

// flagsOf lists the flags of a node itself that --help lists.
func flagsOf(n *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(n.Flags), func(f *kong.Flag) bool { return f.Hidden })
}

// isPath reports whether a value names a file.
func isPath(v *kong.Value) bool {
	return v.Tag != nil && (v.Tag.Type == "path" || v.Tag.Type == "existingfile")
}

// takesFiles reports whether a command has files as arguments.
func takesFiles(n *kong.Node) bool {
	return slices.ContainsFunc(n.Positional, func(v *kong.Positional) bool { return isPath(v) || strings.HasPrefix(v.Name, "file") })
}

// choices are the values that a flag or argument may have, if they are listed.
func choices(v *kong.Value) string { return strings.ReplaceAll(v.Enum, ",", " ") }

// writeBash writes what bash reads. A word of ours never holds anything but
// letters, digits, dots and dashes.
func writeBash(w io.Writer, root *kong.Node) {
	var names []string
	for _, c := range commandsOf(root) {
		names = append(names, c.Name)
	}
	fmt.Fprintf(w, `# bash completion for hotsniff
_hotsniff() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} cmd= words= files= w
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]]; then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	for w in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case $w in
		%s) cmd=$w; break ;;
		esac
	done
	case $cmd:$prev in
`, strings.Join(names, "|"))
	bashValues(w, "*", root)
	for _, c := range commandsOf(root) {
		bashValues(w, c.Name, c)
	}
	fmt.Fprintf(w, "\tesac\n\tcase $cmd in\n\t'') words='%s %s' ;;\n", strings.Join(names, " "), bashFlags(root))
	for _, c := range commandsOf(root) {
		words := bashFlags(root) + " " + bashFlags(c)
		for _, p := range c.Positional {
			if p.Enum != "" {
				words = choices(p) + " " + words
			}
		}
		fmt.Fprintf(w, "\t%s) words='%s'", c.Name, words)
		if takesFiles(c) {
			fmt.Fprint(w, " files=1")
		}
		fmt.Fprint(w, " ;;\n")
	}
	fmt.Fprint(w, `	esac
	COMPREPLY=($(compgen -W "$words" -- "$cur"))
	if [[ $files && $cur != -* ]]; then
		COMPREPLY+=($(compgen -f -- "$cur"))
	fi
}
complete -o filenames -o bashdefault -F _hotsniff hotsniff
`)
}

func bashFlags(n *kong.Node) string {
	var names []string
	for _, f := range flagsOf(n) {
		names = append(names, "--"+f.Name)
	}
	return strings.Join(names, " ")
}

// bashValues writes what follows the flags of a command that take a value.
func bashValues(w io.Writer, cmd string, n *kong.Node) {
	for _, f := range flagsOf(n) {
		switch {
		case f.IsBool():
		case f.Enum != "":
			fmt.Fprintf(w, "\t%s:--%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", cmd, f.Name, choices(f.Value))
		case isPath(f.Value):
			fmt.Fprintf(w, "\t%s:--%s) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", cmd, f.Name)
		default:
			fmt.Fprintf(w, "\t%s:--%s) return ;;\n", cmd, f.Name)
		}
	}
}

// writeZsh writes a function for a directory of $fpath.
func writeZsh(w io.Writer, root *kong.Node) {
	fmt.Fprint(w, "#compdef hotsniff\n# zsh completion for hotsniff\n\n_hotsniff() {\n\tlocal curcontext=$curcontext state line\n\ttypeset -A opt_args\n\tlocal -a commands=(\n")
	for _, c := range commandsOf(root) {
		fmt.Fprintf(w, "\t\t'%s:%s'\n", c.Name, zshText(c.Help))
	}
	fmt.Fprint(w, "\t)\n\t_arguments -C")
	zshFlags(w, root)
	fmt.Fprint(w, " '1: :->command' '*:: :->rest'\n\tcase $state in\n\tcommand) _describe command commands ;;\n\trest)\n\t\tcase $words[1] in\n")
	for _, c := range commandsOf(root) {
		fmt.Fprintf(w, "\t\t%s)\n\t\t\t_arguments", c.Name)
		zshFlags(w, root)
		zshFlags(w, c)
		switch {
		case takesFiles(c):
			fmt.Fprint(w, " '*:file:_files'")
		case len(c.Positional) > 0 && c.Positional[0].Enum != "":
			fmt.Fprintf(w, " '1:%s:(%s)'", c.Positional[0].Name, choices(c.Positional[0]))
		}
		fmt.Fprint(w, " ;;\n")
	}
	fmt.Fprint(w, "\t\tesac ;;\n\tesac\n}\n\n_hotsniff \"$@\"\n")
}

func zshFlags(w io.Writer, n *kong.Node) {
	for _, f := range flagsOf(n) {
		help := zshText(f.Help)
		switch {
		case f.IsBool():
			fmt.Fprintf(w, " \\\n\t\t\t'--%s[%s]'", f.Name, help)
		case f.Enum != "":
			fmt.Fprintf(w, " \\\n\t\t\t'--%s=[%s]:value:(%s)'", f.Name, help, choices(f.Value))
		case isPath(f.Value):
			fmt.Fprintf(w, " \\\n\t\t\t'--%s=[%s]:file:_files'", f.Name, help)
		default:
			fmt.Fprintf(w, " \\\n\t\t\t'--%s=[%s]:value: '", f.Name, help)
		}
	}
}

// zshText quotes a help text for a description between single quotes.
func zshText(s string) string {
	return strings.NewReplacer("'", "'\\''", "[", "\\[", "]", "\\]", ":", "\\:").Replace(s)
}

// writeFish writes what fish reads.
func writeFish(w io.Writer, root *kong.Node) {
	fmt.Fprint(w, "# fish completion for hotsniff\ncomplete -c hotsniff -f\n")
	for _, f := range flagsOf(root) {
		fishFlag(w, "", f)
	}
	for _, c := range commandsOf(root) {
		fmt.Fprintf(w, "complete -c hotsniff -n __fish_use_subcommand -a %s -d %s\n", c.Name, fishText(c.Help))
		seen := " -n '__fish_seen_subcommand_from " + c.Name + "'"
		for _, f := range flagsOf(c) {
			fishFlag(w, seen, f)
		}
		for _, p := range c.Positional {
			if p.Enum != "" {
				fmt.Fprintf(w, "complete -c hotsniff%s -a %s\n", seen, fishText(choices(p)))
			}
		}
		if takesFiles(c) {
			fmt.Fprintf(w, "complete -c hotsniff%s -F\n", seen)
		}
	}
}

func fishFlag(w io.Writer, when string, f *kong.Flag) {
	value := ""
	switch {
	case f.IsBool():
	case f.Enum != "":
		value = " -x -a " + fishText(choices(f.Value))
	case isPath(f.Value):
		value = " -r -F"
	default:
		value = " -x"
	}
	fmt.Fprintf(w, "complete -c hotsniff%s -l %s%s -d %s\n", when, f.Name, value, fishText(f.Help))
}

func fishText(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
