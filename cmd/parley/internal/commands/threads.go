package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"parley/adapters/replay"
	"parley/adapters/web/threads"
	"parley/assembly/legacy"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
)

// conversations are the flags of the commands about threads.
type conversations struct {
	shared
	state, agent, run string
	input             bool
}

func threadsCommand() *cobra.Command {
	t := &conversations{}
	t.thing, t.lister = "thread", "parley threads"
	c := t.Command("threads", "Lists threads, shows one, or exports one for import", wrong(cobra.NoArgs), t.list)
	c.Long = `Lists threads, shows one, or exports one for import.

THREAD is the key of a thread, its UUID, or a message or a run of it as in parley why.`
	c.Example = "  parley threads --workspace local\n  parley threads show slack:acme:C06RY3YBSLE:1700000000.000100\n" +
		"  parley threads show --input https://acme.slack.com/archives/C06RY3YBSLE/p1795754356388078\n  parley threads export 6ba7b810-9dad-41d1-80b4-00c04fd430c8 > thread.jsonl"
	list := t.Command("list", "Lists threads, the last active first", wrong(cobra.NoArgs), t.list)
	t.ListFlags(c, list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().StringVar(&t.state, "state", "", "only those in this state: running, queued, asking or failed")
		one.Flags().StringVar(&t.agent, "agent", "", "only those of this agent")
	}
	show := t.Command("show THREAD", "Shows the messages of a thread, or what its agent got", wrong(cobra.RangeArgs(1, 2)), t.show)
	show.Flags().BoolVar(&t.input, "input", false, "show the input of the newest run: the messages that the agent got")
	show.Flags().StringVar(&t.run, "run", "", "with --input: of this run")
	c.AddCommand(list, show, t.Command("export THREAD", "Writes the messages of a thread in the form that parley import reads", wrong(cobra.ExactArgs(1)), t.export))
	return c
}

func (t *conversations) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	now := time.Now()
	return list[operator.Thread]{
		query: chosen(map[string]string{"workspace": t.workspace, "state": t.state, "agent": t.agent}), read: client.Threads,
		header: []string{"THREAD", "WORKSPACE", "CHANNEL", "LAST", "MESSAGES", "STATE", "TITLE"},
		row: func(x operator.Thread) []any {
			return []any{oneLine(string(x.Key)), x.Workspace, place(x.ChannelName, x.Channel), age(now, x.LastAt), humanize.Comma(x.Messages), threadState(x), oneLine(x.Title)}
		},
	}.show(ctx, c, client, &t.shared)
}

// threadState returns what goes on in a thread, or else how its newest run has ended.
func threadState(x operator.Thread) cell {
	switch {
	case x.Run != "":
		return state("running")
	case x.Agent != "":
		return state("queued")
	}
	return state(x.LastRun)
}

func (t *conversations) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	if len(args) > 1 {
		t.run = args[1] // as in --input RUN
	}
	out := c.OutOrStdout()
	switch {
	case t.run != "" && !t.input:
		return command.UsageError{Err: errors.New("a run needs --input")}
	case !t.input:
		on, now := displayOf(c), time.Now()
		return eachMessage(ctx, client, args[0], func(_ operator.Thread, m threads.Message) error {
			if t.JSON {
				return printJSON(out, m)
			}
			return printMessage(on, m, now)
		})
	}
	in, err := client.Input(ctx, args[0], t.run)
	switch {
	case err != nil && t.run != "":
		one := shared{thing: "run", lister: "parley runs"}
		return one.absent(err, t.run+" of the thread "+args[0])
	case err != nil:
		return err
	case t.JSON:
		return printJSON(out, in)
	}
	return printInput(out, in)
}

// printInput prints the input of a run in words.
func printInput(out io.Writer, in operator.Input) error {
	words := "as it would be now; it was not kept (retention.inputs)"
	switch {
	case in.Hidden:
		words = "which your role may not read"
	case in.Kept:
		words = "as the agent got it"
	}
	of := ""
	if in.Agent != "" {
		of = " of agent " + in.Agent
	}
	fmt.Fprintf(out, "The input of run %s%s, %s:\n", in.Run, of, words)
	for _, m := range in.Messages {
		if _, err := fmt.Fprintf(out, "\n%s\n%s", m.Role, shownLines(m.Text)); err != nil {
			return err
		}
	}
	return nil
}

func (t *conversations) export(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	return eachMessage(ctx, client, args[0], func(x operator.Thread, m threads.Message) error { return exportMessage(c.OutOrStdout(), x, m) })
}

// eachMessage calls do with each message of a thread, in order.
func eachMessage(ctx context.Context, client *operator.Client, ref string, do func(operator.Thread, threads.Message) error) error {
	query := url.Values{}
	for {
		page, err := client.Thread(ctx, ref, query)
		if err != nil {
			return err
		}
		for _, m := range page.Messages {
			if err := do(page.Thread, m); err != nil {
				return err
			}
		}
		if page.Next == nil {
			return nil
		}
		query.Set("after", fmt.Sprint(*page.Next))
	}
}

// printMessage prints a message below a line about it.
func printMessage(on display, m threads.Message, now time.Time) error {
	words := map[messages.Trigger]string{messages.TriggerRun: "asks the agent", messages.TriggerPassive: "context"}[m.Trigger]
	if m.Reason != "" {
		words = strings.TrimSpace(words + " (" + m.Reason + ")")
	}
	line := fmt.Sprintf("%d  %s  %s", m.ThreadSeq, clock(now, m.CreatedAt), sender(m))
	if words != "" {
		line += "  " + words
	}
	_, err := fmt.Fprintf(on, "%s\n%s\n", on.paint(dim, line), shownLines(m.Content))
	return err
}

// sender returns who has written a message: a name, if it has one, with the id.
func sender(m threads.Message) string {
	if m.Kind != "" {
		return m.Kind + " of Parley"
	}
	by, _ := event.ReadMetadata(m.Metadata) // an unreadable one has no name
	return replay.Visible(withName(by.SenderDisplayName, m.SenderID))
}

// shownLines returns the lines of a text, none of which looks like a line of ours.
func shownLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("  " + replay.Visible(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}

// exported is a line of an export.
type exported struct {
	ID        string          `json:"id"`
	Workspace string          `json:"workspace"`
	ThreadID  string          `json:"thread_id"` // the key
	Role      string          `json:"role"`
	Content   string          `json:"content"`
	Metadata  json.RawMessage `json:"metadata"`
	CreatedAt time.Time       `json:"created_at"`
}

// exportMessage writes a message in the form that import reads: a person's text has the prefix of its
// platform. Notices, rows of runs and deleted messages are left out.
func exportMessage(out io.Writer, t operator.Thread, m threads.Message) error {
	if m.Kind != "" || m.DeletedAt != nil || m.Role == "system" || m.Role == "tool" {
		return nil
	}
	line := exported{ID: m.ID, Workspace: t.Workspace, ThreadID: string(t.Key), Role: m.Role, Content: m.Content, Metadata: m.Metadata, CreatedAt: m.CreatedAt}
	if m.Role == "user" {
		author, err := event.ReadMetadata(m.Metadata)
		if err != nil {
			return fmt.Errorf("message %s: %w", m.ID, err)
		}
		line.Content = legacy.Add(m.Content, &author)
	}
	return printJSON(out, line)
}
