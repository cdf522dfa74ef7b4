package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

// people are the flags of the commands about people.
type people struct {
	shared
	dryRun, yes bool
	note, out   string
}

func peopleCommand() *cobra.Command {
	p := &people{}
	p.thing, p.lister = "person", "parley people"
	c := p.Command("people [SEARCH]", "Lists who has written or asked, and exports, forgets, admits or refuses a person", wrong(cobra.MaximumNArgs(1)), p.list)
	c.Long = c.Short + `.

PERSON is an id such as slack:U06STGBF4Q0, the platform's id alone, or a name that one person has.`
	c.Example = "  parley people nora\n  parley people export slack:U06STGBF4Q0 --out nora.zip\n  parley people forget Nora --dry-run\n  parley people forget slack:U06STGBF4Q0 --yes\n  parley people refuse slack:U06STGBF4Q0"
	p.ListFlags(c)
	export := p.Command("export PERSON", "Writes what a person wrote: messages as JSON lines, with their files, in a ZIP archive", wrong(cobra.ExactArgs(1)), p.export)
	export.Flags().StringVar(&p.out, "out", "person.zip", "the archive; - is the standard output")
	forget := p.Command("forget PERSON", "Erases what a person wrote, what answers it, and the person's name", wrong(cobra.ExactArgs(1)), p.forget)
	forget.Long = forget.Short + `.

It goes from the store, the files and the index of words, in all workspaces, within a minute. Empty
rows with their ids stay, so that the order holds and nothing is read again. Words of others stay.`
	forget.Flags().BoolVar(&p.dryRun, "dry-run", false, "say what would go; change nothing")
	forget.Flags().BoolVarP(&p.yes, "yes", "y", false, "do not ask")
	forget.Flags().StringVar(&p.note, "note", "", "why, for the audit")
	c.AddCommand(export, forget)
	for decision, does := range map[string]string{
		"admit":  "Admits a stranger always, where policy.strangers is ask",
		"refuse": "Refuses a stranger: no message asks the approvers again",
		"ask":    "Takes back what was decided about a stranger: the next message asks the approvers",
	} {
		one := p.Command(decision+" PERSON", does, wrong(cobra.ExactArgs(1)), func(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
			return p.decide(ctx, c, client, args[0], decision)
		})
		one.Flags().StringVar(&p.workspace, "workspace", "", "only in this workspace")
		one.Flags().StringVar(&p.note, "note", "", "why, for the audit")
		c.AddCommand(one)
	}
	return c
}

func (p *people) decide(ctx context.Context, c *cobra.Command, client *operator.Client, person, decision string) error {
	made, err := client.DecidePerson(ctx, person, decision, p.workspace, p.note)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return printJSON(c.OutOrStdout(), made)
	}
	now := map[string]string{"admit": "is admitted", "refuse": "is refused", "ask": "asks again with the next message"}[decision]
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s %s in %s\n", made.SenderID, now, strings.Join(made.Workspaces, ", "))
	return err
}

func (p *people) list(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	now := time.Now()
	return list[operator.Person]{
		query: chosen(map[string]string{"q": strings.Join(args, " ")}), read: client.People,
		keep: func(x operator.Person) bool {
			return p.workspace == "" || strings.Contains(strings.Join(x.Workspaces, " ")+" ", p.workspace+" ")
		},
		header: []string{"PERSON", "NAME", "WORKSPACES", "LAST", "ACCESS"},
		row: func(x operator.Person) []any {
			last := "-"
			if x.LastAt != nil {
				last = clock(now, *x.LastAt)
			}
			return []any{x.SenderID, oneLine(x.Name), strings.Join(x.Workspaces, " "), last, accessWords(x.Access)}
		},
	}.show(ctx, c, client, &p.shared)
}

// accessWords returns what was decided about a stranger in each workspace.
func accessWords(list []operator.Access) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = string(a.State) + " in " + a.Workspace
	}
	return cmp.Or(strings.Join(words, ", "), "-")
}

func (p *people) export(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) (err error) {
	archive, err := client.ExportPerson(ctx, args[0])
	if err != nil {
		return err
	}
	defer archive.Close()
	if p.out == "-" {
		_, err = io.Copy(c.OutOrStdout(), archive)
		return err
	}
	file, err := os.OpenFile(p.out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, archive)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(p.out))
	}
	_, err = fmt.Fprintf(c.ErrOrStderr(), "%s, %s\n", p.out, size(n))
	return err
}

func (p *people) forget(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	held, err := client.Person(ctx, args[0])
	if err != nil {
		return err
	}
	has := fmt.Sprintf("%s: %s, %s to them, %s and %s of agents with the name; quotations or the name in %s of others",
		withName(oneLine(held.Name), held.SenderID), count(held.Messages, "message"), count(held.Answers, "answer"), count(held.Files, "file"),
		count(held.Naming, "further message"), count(held.Others, "message"))
	switch {
	case p.dryRun && p.JSON:
		return printJSON(c.OutOrStdout(), held)
	case p.dryRun:
		_, err = fmt.Fprintln(c.OutOrStdout(), has)
		return err
	}
	if err := sure(c, p.yes, "erase for good what there is of "+has); err != nil {
		return err
	}
	made, err := client.ForgetPerson(ctx, held.SenderID, p.note)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return printJSON(c.OutOrStdout(), made)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s is forgotten: %s, %s and %s are empty; %s of others changed\n",
		made.SenderID, count(made.Messages, "message"), count(made.Answers, "answer"), count(made.Files, "file"), count(made.Others, "message"))
	return err
}
