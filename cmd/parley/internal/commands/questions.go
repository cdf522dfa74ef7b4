package commands

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// questions are the flags of the commands about questions of agents.
type questions struct {
	shared
	text, note string
}

func questionsCommand() *cobra.Command {
	q := &questions{}
	q.thing, q.lister = "open question of the run", "parley questions"
	c := q.Command("questions", "Lists the open questions of agents, and answers one", wrong(cobra.NoArgs), q.list)
	c.Long = `Lists the open questions of agents, and answers one.

An answer is a message of yours in the thread of the question: the agent goes on as after an answer in the
chat. If the agent has approvers, an approval needs operator:ID among them, on this machine operator:local.`
	c.Example = "  parley questions\n  parley questions show 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b\n  parley questions answer 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b approve\n  parley questions answer 0190a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b --text 'Only the roses.'"
	list := q.Command("list", "Lists the open questions, the one whose time ends first before the others", wrong(cobra.NoArgs), q.list)
	q.ListFlags(c, list)
	answer := q.Command("answer RUN [OPTION]", "Answers the question of a run, by the id, label or number of an option", wrong(cobra.RangeArgs(1, 2)), q.answer)
	answer.Flags().StringVar(&q.text, "text", "", "other words instead of an option")
	answer.Flags().StringVar(&q.note, "note", "", "why, for the audit")
	c.AddCommand(list, q.Command("show RUN", "Shows the question of a run, and the request for which its agent asks", wrong(cobra.ExactArgs(1)), q.show), answer)
	return c
}

func (q *questions) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	now := time.Now()
	return list[operator.Question]{
		read: client.Questions, keep: func(x operator.Question) bool { return q.workspace == "" || x.Workspace == q.workspace },
		header: []string{"RUN", "PERSON", "CHANNEL", "REQUEST", "AGENT", "QUESTION", "OPTIONS", "LEFT"},
		row: func(x operator.Question) []any {
			return []any{x.Run, oneLine(x.Asker), place(x.ChannelName, x.Channel), firstLine(x.Request), x.Agent, firstLine(x.Text), optionsOf(x), age(x.UntilAt, now)}
		},
	}.show(ctx, c, client, &q.shared)
}

// show prints a question with the request of the person for whom the agent asks.
func (q *questions) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	var found *operator.Question
	_, err := eachItem(ctx, url.Values{}, client.Questions, func(x operator.Question) (bool, error) {
		if x.Run == args[0] {
			found = &x
		}
		return found == nil, nil
	})
	switch {
	case err != nil:
		return err
	case found == nil:
		return fmt.Errorf("there is no open question of the run %s: see parley questions", args[0])
	}
	return q.print(c, found, func(on display) error { return printQuestion(on, *found, time.Now()) })
}

// printQuestion prints who asks for what, and what the agent asks.
func printQuestion(on display, x operator.Question, now time.Time) error {
	t := on.facts()
	t.fact("run", x.Run)
	t.fact("person", oneLine(withName(x.Asker, x.AskerID)))
	t.fact("channel", place(x.ChannelName, x.Channel)+" in "+x.Workspace)
	t.fact("request", oneLine(x.Request))
	t.fact("agent", x.Agent)
	t.fact("question", oneLine(x.Text))
	t.fact("options", optionsOf(x))
	if len(x.Details) > 0 {
		t.fact("details", oneLine(string(x.Details)))
	}
	t.fact("asked", clock(now, x.AskedAt))
	t.fact("until", clock(now, x.UntilAt))
	return t.end()
}

// firstLine returns the first line of a text: the options of a question follow it.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return oneLine(line)
}

// optionsOf returns the options of a question in a cell.
func optionsOf(x operator.Question) string {
	words := make([]string, len(x.Options))
	for i, o := range x.Options {
		words[i] = strconv.Itoa(i+1) + " " + oneLine(o.Label)
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func (q *questions) answer(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	a := operator.Answer{Text: q.text, Note: q.note}
	if len(args) > 1 {
		a.Option = args[1]
	}
	if (a.Option == "") == (a.Text == "") {
		return command.UsageError{Err: errors.New("name an option, or give other words with --text")}
	}
	made, err := client.Answer(ctx, args[0], a)
	switch {
	case err != nil:
		return err
	case q.JSON:
		return printJSON(c.OutOrStdout(), made)
	case made.State == operator.Pending:
		fmt.Fprintln(c.OutOrStdout(), "The answer is stored, and waits for its turn.")
	default:
		fmt.Fprintln(c.OutOrStdout(), "Answered: the agent goes on.")
	}
	return nil
}
