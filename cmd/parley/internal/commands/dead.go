package commands

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/adapters/replay"
	"parley/assembly"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// letters are the flags of the commands about dead letters.
type letters struct {
	shared
	raw, all, dryRun, yes bool
	pattern, note         string
}

func deadCommand() *cobra.Command {
	l := &letters{}
	l.thing, l.lister = "dead letter", "parley dead"
	c := l.Command("dead", "Lists the payloads that could not be recorded, and resubmits or discards them", wrong(cobra.NoArgs), l.list)
	c.Example = "  parley dead\n  parley dead show 7\n  parley dead retry 7 --dry-run\n  parley dead retry --all --error 'event.text*' --yes"
	list := l.Command("list", "Lists the dead letters, the newest first", wrong(cobra.NoArgs), l.list)
	l.ListFlags(c, list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().StringVar(&l.pattern, "error", "", "only those whose error has this form; * stands for any text")
	}
	show := l.Command("show ID", "Shows a dead letter with its payload, in which tokens are masked", wrong(cobra.ExactArgs(1)), l.show)
	show.Flags().BoolVar(&l.raw, "raw", false, "print the bytes of the payload alone, with its tokens")
	c.AddCommand(list, show, l.retryCommand(), l.discardCommand(), l.exportCommand())
	return c
}

func (l *letters) retryCommand() *cobra.Command {
	c := l.Command("retry ID… | --all", "Gives dead letters to this daemon again", wrong(l.someOrAll), l.retry)
	c.Long = `Gives dead letters to this daemon again.

A letter keeps its id, its dedupe key and the id of its message, so nothing is recorded twice. A
message older than policy.max_age becomes context and is not answered. With --dry-run, this program
plays the letter on a scratch store, without the earlier messages of its thread, and asks the agent;
nothing is stored or sent.

Exit status: 0 all have a result, 1 a letter is dead again or was refused.`
	c.Example = "  parley dead retry 7 8\n  parley dead retry --all --error 'event.text*' --yes"
	c.Flags().BoolVar(&l.all, "all", false, "all dead letters, the oldest first")
	c.Flags().StringVar(&l.pattern, "error", "", "with --all, only those whose error has this form; * stands for any text")
	c.Flags().BoolVar(&l.dryRun, "dry-run", false, "show the decision, the agent's input and its reply; change nothing")
	c.Flags().BoolVarP(&l.yes, "yes", "y", false, "with --all, do not ask")
	return c
}

func (l *letters) discardCommand() *cobra.Command {
	c := l.Command("discard ID --note T", "Gives up a dead letter and empties its payload", wrong(cobra.ExactArgs(1)), l.discard)
	c.Flags().StringVar(&l.note, "note", "", "why; required, and kept in the audit")
	return c
}

func (l *letters) exportCommand() *cobra.Command {
	c := l.Command("export", "Prints the dead letters as a recording for parley replay, the oldest first", wrong(cobra.NoArgs), l.export)
	c.Example = "  parley dead export > dead.jsonl\n  parley replay dead.jsonl"
	c.Flags().BoolVar(&l.raw, "raw", false, "leave tokens in the payloads")
	return c
}

// someOrAll demands ids or --all.
func (l *letters) someOrAll(_ *cobra.Command, args []string) error {
	switch {
	case l.all == (len(args) > 0):
		return errors.New("name the ids of dead letters, or --all")
	case l.pattern != "" && !l.all:
		return errors.New("--error belongs to --all")
	}
	return nil
}

// glob returns the regular expression of a pattern for a whole text. A * matches any text, and so does an empty pattern.
func glob(pattern string) (*regexp.Regexp, error) {
	parts := strings.Split(cmp.Or(pattern, "*"), "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.Compile(`(?s)^` + strings.Join(parts, ".*") + `$`)
}

func (l *letters) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	form, err := glob(l.pattern)
	if err != nil {
		return err
	}
	now := time.Now()
	return list[operator.DeadLetter]{
		read: client.Dead, keep: func(d operator.DeadLetter) bool {
			return form.MatchString(d.Error) && (l.workspace == "" || d.Workspace == l.workspace)
		},
		header: []string{"ID", "WORKSPACE", "RECEIVED", "KIND", "ERROR"},
		row: func(d operator.DeadLetter) []any {
			return []any{d.ID, d.Workspace, received(now, d), d.Kind, oneLine(d.Error)}
		},
	}.show(ctx, c, client, &l.shared)
}

// received returns when a dead letter came.
func received(now time.Time, d operator.DeadLetter) string {
	if d.ReceivedAt == nil {
		return "-"
	}
	return clock(now, *d.ReceivedAt)
}

// oneLine returns a text of strangers for a cell of a table: its lines and tabs as one line, and the rest as a terminal may show it.
func oneLine(text string) string {
	return replay.Visible(strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\t\n\v\f\r\u0085\u2028\u2029", r) }), " "))
}

func (l *letters) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	id, err := number(args[0])
	if err != nil {
		return err
	}
	d, err := client.DeadLetter(ctx, id, l.raw)
	out := c.OutOrStdout()
	switch {
	case err != nil:
		return err
	case l.JSON:
		return printJSON(out, d)
	case l.raw && d.Payload == nil:
		return fmt.Errorf("dead letter %d has no payload any more", id)
	case l.raw:
		_, err = io.WriteString(out, *d.Payload)
		return err
	}
	t := displayOf(c).facts()
	t.fact("dead letter", d.ID)
	t.fact("state", state(string(d.State)))
	t.fact("workspace", fmt.Sprintf("%s (%s, %s)", d.Workspace, d.Platform, d.Transport))
	t.fact("received", received(time.Now(), d))
	t.fact("kind", d.Kind)
	t.fact("thread", d.Thread)
	t.fact("message", d.Message)
	t.fact("key", oneLine(d.Key))
	if d.Disposition != "" {
		t.fact("result", strings.TrimSpace(d.Disposition+" "+d.Reason))
	}
	if d.Error != "" {
		t.fact("error", cell{oneLine(d.Error), red})
	}
	err = t.end()
	if d.Payload != nil {
		_, more := io.WriteString(out, "\n"+shownLines(pretty(*d.Payload)))
		err = errors.Join(err, more)
	}
	return err
}

// pretty returns a payload with a line for each of its members, if it is JSON.
func pretty(payload string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(payload), "", "  ") != nil {
		return payload
	}
	return b.String()
}

func (l *letters) retry(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	ids, err := l.chosen(ctx, client, args)
	if err != nil {
		return err
	}
	if l.all && !l.dryRun && len(ids) > 0 {
		if err := sure(c, l.yes, "resubmit "+count(len(ids), "dead letter")); err != nil {
			return err
		}
	}
	how := operator.RetryOptions{DryRun: l.dryRun, Wait: 10}
	sum := map[string]int{}
	for _, id := range ids {
		r, err := client.RetryDead(ctx, id, how)
		refused, ok := errors.AsType[*operator.Error](err)
		switch {
		case ok && l.all && refused.Status < 500: // the others are not concerned
			r = operator.Retried{ID: id, Disposition: "refused", Trigger: "none", Error: refused.Error()}
		case ok && refused.Code == "not-found":
			return l.absent(err, strconv.FormatInt(id, 10))
		case err != nil:
			return fmt.Errorf("dead letter %d: %w; repeat the command for the rest", id, err)
		}
		if r.Disposition == operator.Pending {
			how.Wait = 0 // the same cause would delay the others
		}
		sum[r.Disposition]++
		sum[r.Trigger]++
		if err := l.printRetried(c.OutOrStdout(), r); err != nil {
			return err
		}
	}
	if !l.JSON && len(ids) != 1 {
		fmt.Fprintln(c.OutOrStdout(), summary(len(ids), l.dryRun, sum))
	}
	if n := sum["dead"] + sum["refused"]; n > 0 && !l.dryRun {
		return fmt.Errorf("%s without a result: see parley dead", count(n, "letter"))
	}
	return nil
}

// chosen returns the ids of the letters that are meant, the oldest first.
func (l *letters) chosen(ctx context.Context, client *operator.Client, args []string) (ids []int64, err error) {
	for _, arg := range args {
		id, err := number(arg)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if l.all {
		form, wrong := glob(l.pattern)
		if wrong != nil {
			return nil, wrong
		}
		_, err = eachItem(ctx, url.Values{"limit": {"500"}}, client.Dead, func(d operator.DeadLetter) (bool, error) {
			if form.MatchString(d.Error) {
				ids = append(ids, d.ID)
			}
			return true, nil
		})
		slices.Reverse(ids)
	}
	return ids, err
}

// sure asks before a change that is large or final, unless yes is set. Without a terminal it refuses.
func sure(c *cobra.Command, yes bool, change string) error {
	if yes {
		return nil
	}
	in, ok := c.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return command.UsageError{Err: errors.New("to " + change + ", say --yes")}
	}
	fmt.Fprintf(c.ErrOrStderr(), "%s? [y/N] ", strings.ToUpper(change[:1])+change[1:])
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of the input is a no
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return errors.New("nothing was changed")
	}
	return nil
}

// summary returns the number of letters by their results.
func summary(n int, dryRun bool, sum map[string]int) string {
	verb := "resubmitted"
	if dryRun {
		verb = "played, nothing was changed"
	}
	var parts []string
	for _, one := range []string{"stored", "updated", "duplicate", "ignored", "dead", operator.Pending, "refused"} {
		if sum[one] == 0 {
			continue
		}
		part := fmt.Sprintf("%d %s", sum[one], one)
		switch one {
		case "stored":
			part += fmt.Sprintf(" (%d run, %d context)", sum["run"], sum["passive"])
		case "dead":
			part += " again"
		}
		parts = append(parts, part)
	}
	words := fmt.Sprintf("%d %s", n, verb)
	if len(parts) > 0 {
		words += ": " + strings.Join(parts, ", ")
	}
	return words
}

// printRetried prints the result of a letter.
func (l *letters) printRetried(out io.Writer, r operator.Retried) error {
	if l.JSON {
		return printJSON(out, r)
	}
	words := fmt.Sprintf("%d  %s", r.ID, r.Disposition)
	switch {
	case r.Trigger == "run":
		words += ", run (" + r.Reason + ")"
	case r.Reason == "too-old":
		words += ", context (older than policy.max_age)"
	case r.Trigger == "passive":
		words += ", context (" + r.Reason + ")"
	case r.Disposition == operator.Pending:
		words += ": no result yet; see parley dead show " + strconv.FormatInt(r.ID, 10)
	case r.Reason != "":
		words += " (" + r.Reason + ")"
	}
	if r.Error != "" {
		words += ": " + oneLine(r.Error)
	}
	if _, err := fmt.Fprintln(out, words); err != nil {
		return err
	}
	var input []assembly.Message
	for _, m := range r.Assembled {
		input = append(input, assembly.Message{Role: assembly.Role(m.Role), Parts: []assembly.Part{{Text: m.Text()}}})
	}
	return replay.WriteAnswer(out, input, r.Replies)
}

func (l *letters) discard(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	id, err := number(args[0])
	switch {
	case err != nil:
		return err
	case l.note == "":
		return command.UsageError{Err: errors.New("say why with --note")}
	}
	d, err := client.DiscardDead(ctx, id, l.note)
	switch {
	case err != nil:
		return err
	case l.JSON:
		return printJSON(c.OutOrStdout(), d)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "dead letter %d is %s\n", d.ID, d.State)
	return err
}

// export prints a recording. A payload that is no JSON has no place in it.
func (l *letters) export(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	l.all = true
	ids, err := l.chosen(ctx, client, nil)
	if err != nil {
		return err
	}
	for _, id := range ids {
		d, err := client.DeadLetter(ctx, id, l.raw)
		switch {
		case err != nil:
			return err
		case d.Payload == nil || !json.Valid([]byte(*d.Payload)):
			fmt.Fprintf(c.ErrOrStderr(), "dead letter %d is left out: its payload is gone or no JSON; see parley dead show %d --raw\n", id, id)
			continue
		}
		if err := printJSON(c.OutOrStdout(), recordedLetter{d.Platform, d.Workspace, d.Transport, d.ReceivedAt, json.RawMessage(*d.Payload)}); err != nil {
			return err
		}
	}
	return nil
}

// recordedLetter is a line of a recording.
type recordedLetter struct {
	Platform   string          `json:"platform"`
	Workspace  string          `json:"workspace"`
	Transport  string          `json:"transport"`
	ReceivedAt *time.Time      `json:"received_at,omitempty"`
	Body       json.RawMessage `json:"body"`
}
