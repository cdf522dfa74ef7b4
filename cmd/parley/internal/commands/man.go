package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// manCommand returns the hidden command that writes the manual pages of all commands, for packages.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIR",
		Short:   "Writes the manual pages into a folder",
		Example: "  parley man man1 && man -l man1/parley-backup.1",
		Hidden:  true,
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return errors.Join(os.MkdirAll(args[0], 0o755), writePages(c.Root(), args[0]))
		},
	}
}

// writePages writes a page for the program, and one for each of its commands with their own commands.
func writePages(root *cobra.Command, dir string) (err error) {
	main := manPage(root)
	main.section("COMMANDS")
	for _, c := range root.Commands() {
		if !c.IsAvailableCommand() || c.Name() == "help" {
			continue
		}
		one := manPage(c)
		main.item(`\fB`+roff(one.name)+`\fR(1)`, c.Short)
		one.commands(c)
		one.section("SEE ALSO")
		one.line(`\fBparley\fR(1)`)
		err = errors.Join(err, one.write(dir))
	}
	for _, topic := range root.Commands() {
		if topic.IsAdditionalHelpTopicCommand() {
			main.section(strings.ToUpper(topic.Name()))
			main.text(topic.Long)
		}
	}
	return errors.Join(err, main.write(dir))
}

// manual is a page in the language of man(7).
type manual struct {
	name string
	strings.Builder
}

// manPage returns the page of a command without the commands below it.
func manPage(c *cobra.Command) *manual {
	m := &manual{name: strings.ReplaceAll(c.CommandPath(), " ", "-")}
	m.line(fmt.Sprintf(`.TH "%s" "1" "" "parley %s" "Parley"`+"\n.ad l", roff(strings.ToUpper(m.name)), roff(version)))
	m.section("NAME")
	m.line(roff(m.name) + ` \- ` + roff(lowered(c.Short)))
	m.section("SYNOPSIS")
	m.line(synopsis(c))
	m.section("DESCRIPTION")
	m.body(c)
	return m
}

// lowered returns a sentence as the words after a name.
func lowered(text string) string { return strings.ToLower(text[:1]) + text[1:] }

// synopsis returns the form of a command's line.
func synopsis(c *cobra.Command) string {
	if c.Runnable() && c.HasParent() {
		return `\fB` + roff(c.UseLine()) + `\fR`
	}
	return `\fB` + roff(c.CommandPath()) + `\fR COMMAND [flags]`
}

// body writes the words, the flags and the examples of a command.
func (m *manual) body(c *cobra.Command) {
	words := c.Long
	if words == "" {
		words = c.Short + "."
	}
	m.text(words)
	m.flags("Flags:", c.NonInheritedFlags())
	m.flags("Flags of all commands:", c.InheritedFlags())
	if c.Example != "" {
		m.line(".PP\nExamples:\n.PP")
		m.text(c.Example)
	}
}

// commands writes what the commands below a command do.
func (m *manual) commands(parent *cobra.Command) {
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			m.section(strings.ToUpper(c.CommandPath()))
			m.line(synopsis(c) + "\n.PP")
			m.body(c)
			m.commands(c)
		}
	}
}

// flags writes a list of flags below a title; nothing without flags.
func (m *manual) flags(title string, set *pflag.FlagSet) {
	if !set.HasAvailableFlags() {
		return
	}
	m.line(".PP\n" + title)
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		form := `\fB` + roff("--"+f.Name) + `\fR`
		if f.Shorthand != "" {
			form = `\fB` + roff("-"+f.Shorthand) + `\fR, ` + form
		}
		if value != "" {
			form += ` \fI` + roff(value) + `\fR`
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0" && f.DefValue != "0s" {
			usage += " (default " + f.DefValue + ")"
		}
		m.item(form, usage)
	})
}

// line writes a line of the language.
func (m *manual) line(text string) { m.WriteString(text + "\n") }

// section begins a section.
func (m *manual) section(title string) { m.line(`.SH "` + roff(title) + `"`) }

// item writes an entry of a list.
func (m *manual) item(form, words string) { m.line(".TP\n" + form + "\n" + roff(words)) }

// text writes paragraphs. Lines with an indent stay as they are.
func (m *manual) text(words string) {
	verbatim := false
	for _, line := range strings.Split(words, "\n") {
		indented := strings.HasPrefix(line, " ")
		switch {
		case indented && !verbatim:
			m.line(".PP\n.nf")
		case !indented && verbatim:
			m.line(".fi\n.PP")
		case line == "":
			m.line(".PP")
		}
		if verbatim = indented; line != "" {
			m.line(roff(line))
		}
	}
	if verbatim {
		m.line(".fi")
	}
}

// roff returns a text in which nothing is a command of the language.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ", `"`, `\(dq`).Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// write writes the page into a folder.
func (m *manual) write(dir string) error {
	return os.WriteFile(filepath.Join(dir, m.name+".1"), []byte(m.String()), 0o644)
}
