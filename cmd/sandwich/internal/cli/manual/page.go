package manual

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// roff writes a page in the macros of man(7).
type roff struct{ bytes.Buffer }

// line writes a request with its arguments.
func (r *roff) line(request string, args ...string) {
	r.WriteString("." + request)
	for _, a := range args {
		r.WriteString(` "` + strings.ReplaceAll(escape(a), `"`, `\(dq`) + `"`)
	}
	r.WriteByte('\n')
}

// text writes a line of text.
func (r *roff) text(s string) {
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		r.WriteString(`\&`)
	}
	r.WriteString(escape(s) + "\n")
}

// escape escapes characters that roff interprets. Hyphens are those that shells understand.
func escape(s string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "~", `\(ti`, "^", `\(ha`, "`", `\(ga`, "'", `\(aq`,
		"µ", `\(mc`).Replace(s)
}

// page returns the manual page of a command.
func page(c *cobra.Command, date string) []byte {
	r := &roff{}
	fmt.Fprintf(r, ".TH \"%s\" 1 \"%s\" \"%s\" \"User commands\"\n", escape(strings.ToUpper(pageName(c))), date,
		escape(c.Root().Version))
	r.line("SH", "NAME")
	r.text(pageName(c) + ` - ` + c.Short)
	r.line("SH", "SYNOPSIS")
	r.line("B", c.UseLine())
	if c.HasAvailableSubCommands() {
		r.line("br")
		r.line("B", c.CommandPath()+" COMMAND")
	}
	if c.Long != "" {
		r.line("SH", "DESCRIPTION")
		r.prose(c.Long)
	}
	r.commands(c)
	r.options("OPTIONS", c.NonInheritedFlags())
	r.options("GLOBAL OPTIONS", c.InheritedFlags())
	if c.Example != "" {
		r.line("SH", "EXAMPLES")
		r.literal(strings.Split(c.Example, "\n"))
	}
	r.exitStatus()
	r.seeAlso(c)
	return r.Bytes()
}

// prose writes the long description of a command. Indented lines keep their breaks.
func (r *roff) prose(long string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(long), "\n\n") {
		if i > 0 {
			r.line("PP")
		}
		lines := strings.Split(paragraph, "\n")
		for len(lines) > 0 {
			n := 0
			for n < len(lines) && isLiteral(lines[n]) == isLiteral(lines[0]) {
				n++
			}
			if isLiteral(lines[0]) {
				r.literal(lines[:n])
			} else {
				for _, l := range lines[:n] {
					r.text(l)
				}
			}
			lines = lines[n:]
		}
	}
}

func isLiteral(line string) bool {
	return strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t")
}

// literal writes indented lines without filling them.
func (r *roff) literal(lines []string) {
	r.line("RS", "4")
	r.line("nf")
	for _, l := range lines {
		r.text(strings.TrimPrefix(strings.TrimRight(l, " "), "  "))
	}
	r.line("fi")
	r.line("RE")
}

// commands lists the commands below c.
func (r *roff) commands(c *cobra.Command) {
	if !c.HasAvailableSubCommands() {
		return
	}
	r.line("SH", "COMMANDS")
	for _, sub := range c.Commands() {
		if !listed(sub) {
			continue
		}
		r.line("TP")
		r.line("B", sub.Name())
		r.text(sub.Short + ".")
	}
}

// options lists flags with their defaults.
func (r *roff) options(title string, fs *pflag.FlagSet) {
	if !fs.HasAvailableFlags() {
		return
	}
	r.line("SH", title)
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := `\fB` + escape("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			name = `\fB` + escape("-"+f.Shorthand) + `\fR, ` + name
		}
		if f.NoOptDefVal != "" && value != "" {
			value = "[=" + value + "]"
		} else if value != "" {
			value = " " + value
		}
		r.line("TP")
		fmt.Fprintf(r, "%s\\fI%s\\fR\n", name, escape(value))
		if d := f.DefValue; d != "" && d != "false" && d != "[]" && !strings.Contains(usage, "(default") {
			usage += fmt.Sprintf(" (default: %s)", d)
		}
		r.text(usage)
	})
}

func (r *roff) exitStatus() {
	r.line("SH", "EXIT STATUS")
	for _, s := range [][2]string{{"0", "The command succeeded."}, {"1", "It failed, or a check found a regression."},
		{"2", "An input cannot be used: a flag, a file, a model."}, {"3", "A measurement is too noisy to decide."},
		{"4", "The plan does not fit this host."}} {
		r.line("TP", "4")
		r.line("B", s[0])
		r.text(s[1])
	}
}

// seeAlso names the pages of the parent and of the commands below c.
func (r *roff) seeAlso(c *cobra.Command) {
	var names []string
	if c.HasParent() {
		names = append(names, pageName(c.Parent()))
	}
	for _, sub := range c.Commands() {
		if listed(sub) {
			names = append(names, pageName(sub))
		}
	}
	if len(names) == 0 {
		return
	}
	r.line("SH", "SEE ALSO")
	for i, name := range names {
		comma := ""
		if i < len(names)-1 {
			comma = ","
		}
		fmt.Fprintf(r, ".BR %s (1)%s\n", escape(name), comma)
	}
}
