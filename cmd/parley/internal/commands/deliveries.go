package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/operator"
)

// deliveries are the flags of the commands about deliveries.
type deliveries struct {
	shared
	state, post string
	limit       int
	force       bool
}

func deliveriesCommand() *cobra.Command {
	d := &deliveries{}
	c := d.Command("deliveries", "Lists the posts of replies, and sends, confirms or drops those that are not sent", wrong(cobra.NoArgs), d.list)
	c.Long = `Lists the posts of replies, and sends, confirms or drops those that are not sent.

A delivery is unknown if its platform could not tell whether the post arrived and turns.unknown is
hold. It is failed if its platform refused the post.`
	c.Example = "  parley deliveries --state unknown,failed\n  parley deliveries resend 88\n  parley deliveries confirm 88 --post C06RY3YBSLE/1795754999.000100"
	list := d.Command("list", "Lists the deliveries, the newest first", wrong(cobra.NoArgs), d.list)
	for _, one := range []*cobra.Command{c, list} {
		one.Flags().StringVar(&d.state, "state", "", "only those in these states: pending, sending, sent, unknown, failed, dropped")
		one.Flags().IntVar(&d.limit, "limit", 100, "at most this many, up to 500")
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
	page, err := client.Deliveries(ctx, url.Values{"state": {d.state}, "limit": {strconv.Itoa(d.limit)}})
	switch {
	case err != nil:
		return err
	case d.JSON:
		return printItems(c.OutOrStdout(), page.Items)
	}
	w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tTHREAD\tPART\tSTATE\tTRIES\tAGE\tERROR\tPLATFORM")
	now := time.Now()
	for _, x := range page.Items {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", x.ID, oneLine(x.Thread), part(x), x.State, x.Attempts, age(now, x.CreatedAt),
			cmp.Or(oneLine(x.Error), "-"), cmp.Or(x.PlatformID, "-"))
	}
	if page.Next != nil && !d.Quiet {
		fmt.Fprintln(c.ErrOrStderr(), "there are more: see --limit and --state")
	}
	return w.Flush()
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
	return d.print(c.OutOrStdout(), x, func(out io.Writer) error {
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "delivery\t%d, %s\nthread\t%s\nrun\t%s\npart\t%s\ntries\t%d\nmade\t%s\npost\t%s\n", x.ID, x.State, oneLine(x.Thread), x.Run, part(x),
			x.Attempts, clock(&x.CreatedAt), cmp.Or(x.PlatformID, "-"))
		if x.Link != "" {
			fmt.Fprintf(w, "link\t%s\n", oneLine(x.Link))
		}
		if x.Error != "" {
			fmt.Fprintf(w, "error\t%s\n", oneLine(x.Error))
		}
		if x.Text != nil {
			fmt.Fprintf(w, "text\t%s\n", oneLine(*x.Text))
		}
		return w.Flush()
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
	return d.print(c.OutOrStdout(), x, func(out io.Writer) error { return words(out, x) })
}

// print prints a delivery as JSON or in words.
func (d *deliveries) print(out io.Writer, x operator.Delivery, words func(io.Writer) error) error {
	if d.JSON {
		return printJSON(out, x)
	}
	return words(out)
}
