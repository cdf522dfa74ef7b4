package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/adapters/replay"
	"parley/cmd/parley/internal/operator"
	"parley/config"
)

func whyCommand() *cobra.Command {
	var at target
	var asJSON bool
	c := &cobra.Command{
		Use:   "why REF",
		Short: "Tells why a message was answered, or was not",
		Long: `Tells the life of one message, and which key of which file decided about it. REF is the link of a message on
Slack or Discord, its id on its platform, its UUID in the API, or the id of a run. If the store does
not have the message, the command tests the possible reasons.`,
		Example: "  parley why https://acme.slack.com/archives/C06RY3YBSLE/p1795754356388078\n  parley why --json C06RY3YBSLE/1795754356.388078 | jq .because",
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return operate(c, &at, func(ctx context.Context, client *operator.Client) error {
				w, err := client.Why(ctx, args[0])
				switch {
				case err != nil:
					return err
				case asJSON:
					err = printJSON(c.OutOrStdout(), w)
				default:
					_, err = io.WriteString(c.OutOrStdout(), whyText(displayOf(c), w, time.Now()))
				}
				if err == nil && !w.Found {
					err = errors.New("the store has no message " + replay.Visible(args[0]))
				}
				return err
			})
		},
	}
	at.Flags(c)
	jsonFlag(c, &asJSON)
	return c
}

// whyText returns the life of a message in words.
func whyText(on display, w operator.Why, now time.Time) string {
	var b strings.Builder
	if !w.Found {
		fmt.Fprintf(&b, "The store has no message %s. Possible reasons:\n", replay.Visible(w.Ref))
		for _, p := range w.Possible {
			word, as := verdict(p)
			fmt.Fprintf(&b, "  %s%s  %s\n", on.paint(as, word), strings.Repeat(" ", max(0, 8-len(word))), replay.Visible(p.Reason))
		}
		return b.String()
	}
	if m := w.Message; m != nil {
		fmt.Fprintf(&b, "%s by %s in %s, %s\n", on.paint(bold, replay.Visible(quote(m.Content))), sender(*m), withName(place(w.ChannelName, ""), replay.Visible(w.Channel)), clock(now, m.CreatedAt))
		now = m.CreatedAt.In(now.Location()) // a step of another day has its date
	}
	for _, s := range w.Steps {
		fmt.Fprintf(&b, "  %s  %-9s %s\n", on.paint(dim, clockMS(now, s.At)), s.What, replay.Visible(strings.TrimSpace(s.Detail+" "+s.Link)))
	}
	if w.TraceID != "" {
		fmt.Fprintf(&b, "  Trace: %s\n", replay.Visible(cmp.Or(w.TraceLink, w.TraceID)))
	}
	if w.Run != "" { // the reason for which the run began is not why it has no answer
		fmt.Fprintf(&b, "  %s  %s: %s\n", on.paint(red, "NOT ANSWERED"), w.Run, replay.Visible(w.RunWords))
		if w.Repair != "" {
			fmt.Fprintf(&b, "  To ask again: %s\n", w.Repair)
		}
		return b.String()
	}
	outcome := on.paint(yellow, "NOT ANSWERED")
	switch {
	case w.Answered:
		outcome = on.paint(green, "ANSWERED")
	case w.Quiet:
		outcome = on.paint(dim, "QUIET")
	}
	if w.Reason == "" && w.Words != "" {
		outcome = on.paint(dim, "A MESSAGE OF OURS")
	}
	fmt.Fprintf(&b, "  %s  %s\n", outcome, replay.Visible(strings.Trim(w.Reason+": "+w.Words, ": ")))
	for _, s := range w.Because {
		fmt.Fprintf(&b, "    %s\n", replay.Visible(because(s)))
	}
	if w.Changed != "" {
		fmt.Fprintf(&b, "    %s\n", replay.Visible(w.Changed))
	}
	if w.Change != "" && !w.Answered && !w.Quiet {
		fmt.Fprintf(&b, "  To change it: %s\n", w.Change)
	}
	return b.String()
}

// because returns a setting that decided, with its place.
func because(s config.Setting) string {
	value := s.Value
	if value == "" {
		value = "not set"
	}
	if s.File == "" {
		return fmt.Sprintf("%s is %s (default)", s.Key, value)
	}
	return fmt.Sprintf("%s is %s (%s:%d)", s.Key, value, s.File, s.Line)
}

// verdict returns the result of a test in one word, and its style.
func verdict(p operator.Possible) (string, style) {
	switch {
	case !p.Tested:
		return "maybe", yellow
	case p.Holds:
		return "YES", red
	}
	return "no", dim
}

// maxQuote bounds the characters of a message that are shown.
const maxQuote = 80

// quote returns the beginning of a text in quotation marks, on one line.
func quote(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > maxQuote {
		text = string(runes[:maxQuote]) + "…"
	}
	return `"` + text + `"`
}
