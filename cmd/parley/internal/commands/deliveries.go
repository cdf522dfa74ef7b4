package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// deliveries are the flags of the commands about deliveries.
type deliveries struct {
	shared
	state, post string
	force       bool
}

func deliveriesCommand() *cobra.Command {
	d := &deliveries{}
	d.thing, d.lister = "delivery", "parley deliveries"
	c := d.Command("deliveries", "Lists the posts of replies, and sends, confirms or drops those that are not sent", wrong(cobra.NoArgs), d.list)
	c.Long = `Lists the posts of replies, and sends, confirms or drops those that are not sent.

A delivery is unknown if its platform could not tell whether the post arrived and turns.unknown is
hold. It is failed if its platform refused the post.`
	c.Example = "  parley deliveries --state unknown,failed\n  parley deliveries resend 88\n  parley deliveries confirm 88 --post C06RY3YBSLE/1795754999.000100"
	list := d.Command("list", "Lists the deliveries, the newest first", wrong(cobra.NoArgs), d.list)
	d.ListFlags(c, list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().StringVar(&d.state, "state", "", "only those in these states: pending, sending, sent, unknown, failed, dropped")
	}
	resend := d.Command("resend ID", "Sends a delivery again, unless its post is there", wrong(cobra.ExactArgs(1)), d.resend)
	resend.Flags().BoolVar(&d.force, "force", false, "do not look at the platform first; people may see the post twice")
	confirm := d.Command("confirm ID --post POST", "Records that the post of a delivery is on the platform", wrong(cobra.ExactArgs(1)), d.confirm)
	confirm.Flags().StringVar(&d.post, "post", "", "the platform's id of the post, as parley deliveries shows those of others; required")
	c.AddCommand(list, d.Command("show ID", "Shows a delivery and its text", wrong(cobra.ExactArgs(1)), d.show), resend, confirm,
		d.Command("drop ID", "Gives up a delivery, and the rest of its reply that failed with it", wrong(cobra.ExactArgs(1)), d.drop))
	return c
}

func (d *deliveries) list(ctx context.Context, c *cobra.Command, client *operator.Client, _ []string) error {
	now := time.Now()
	return list[operator.Delivery]{
		query: url.Values{"state": {d.state}}, read: client.Deliveries, keep: func(x operator.Delivery) bool { return d.workspace == "" || x.Workspace == d.workspace },
		header: []string{"ID", "CHANNEL", "PART", "STATE", "TRIES", "AGE", "THREAD", "POST", "ERROR"},
		row: func(x operator.Delivery) []any {
			return []any{x.ID, place(x.ChannelName, x.Channel), part(x), state(x.State), x.Attempts, age(now, x.CreatedAt), oneLine(x.Thread), oneLine(x.PlatformID), oneLine(x.Error)}
		},
	}.show(ctx, c, client, &d.shared)
}

// part returns the part of a reply that a delivery carries, or what else it does.
func part(x operator.Delivery) string {
	if x.Part == 0 {
		return x.Kind
	}
	return fmt.Sprintf("%d/%d", x.Part, x.Parts)
}

func (d *deliveries) show(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	id, err := number(args[0])
	if err != nil {
		return err
	}
	x, err := client.Delivery(ctx, id)
	if err != nil {
		return err
	}
	return d.print(c, x, func(on display) error {
		t := on.facts()
		t.fact("delivery", x.ID)
		t.fact("state", state(x.State))
		t.fact("channel", place(x.ChannelName, x.Channel))
		t.fact("thread", oneLine(x.Thread))
		t.fact("run", x.Run)
		t.fact("part", part(x))
		t.fact("tries", x.Attempts)
		t.fact("made", clock(time.Now(), x.CreatedAt))
		t.fact("post", oneLine(x.PlatformID))
		if x.Link != "" {
			t.fact("link", oneLine(x.Link))
		}
		if x.Error != "" {
			t.fact("error", cell{oneLine(x.Error), red})
		}
		if x.Text != nil {
			t.fact("text", oneLine(*x.Text))
		}
		return t.end()
	})
}

func (d *deliveries) resend(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	return d.change(ctx, c, client, args, "resend", map[string]bool{"force": d.force}, func(out io.Writer, x operator.Delivery) error {
		words := "The platform does not show it. "
		if d.force {
			words = ""
		}
		switch x.State {
		case "sent":
			words += "Sent as " + cmp.Or(x.PlatformID, "a call without a post") + "."
		case "unknown", "failed":
			return errors.New("it is " + x.State + " again: " + oneLine(x.Error))
		default:
			words += "It waits for its turn: " + cmp.Or(oneLine(x.Error), x.State) + "."
		}
		_, err := fmt.Fprintln(out, words)
		return err
	})
}

func (d *deliveries) confirm(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	if d.post == "" {
		return command.UsageError{Err: errors.New("name the post with --post")}
	}
	return d.change(ctx, c, client, args, "confirm", map[string]string{"post": d.post}, func(out io.Writer, x operator.Delivery) error {
		_, err := fmt.Fprintf(out, "delivery %d was sent as %s\n", x.ID, x.PlatformID)
		return err
	})
}

func (d *deliveries) drop(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	return d.change(ctx, c, client, args, "drop", nil, func(out io.Writer, x operator.Delivery) error {
		_, err := fmt.Fprintf(out, "delivery %d is %s\n", x.ID, x.State)
		return err
	})
}

// change asks for a change of a delivery and prints the result.
func (d *deliveries) change(ctx context.Context, c *cobra.Command, client *operator.Client, args []string, change string, body any,
	words func(io.Writer, operator.Delivery) error) error {
	id, err := number(args[0])
	if err != nil {
		return err
	}
	x, err := client.ChangeDelivery(ctx, id, change, body)
	if err != nil {
		return err
	}
	return d.print(c, x, func(on display) error { return words(on, x) })
}
