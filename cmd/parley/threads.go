package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"parley/adapters/web/threads"
	"parley/assembly/legacy"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/event"
)

func threadsCommand() *cobra.Command {
	var path, workspace string
	var asJSON bool
	var limit int
	list := func(c *cobra.Command, _ []string) error {
		return operate(c, path, func(ctx context.Context, client *operator.Client) error {
			query := url.Values{}
			if workspace != "" {
				query.Set("workspace", workspace)
			}
			out := c.OutOrStdout()
			if !asJSON {
				fmt.Fprintln(out, "THREAD\tWORKSPACE\tLAST\tMESSAGES\tTITLE")
			}
			return pages(ctx, limit, query, client.Threads, func(items []operator.Thread) error {
				if asJSON {
					return printItems(out, items)
				}
				return printThreads(out, items, time.Now())
			})
		})
	}
	c := &cobra.Command{
		Use:     "threads",
		Short:   "Lists threads, shows one, or exports one for import",
		Example: "  parley threads --workspace acme\n  parley threads show slack:acme:C06RY3YBSLE:1700000000.000100\n  parley threads export 6ba7b810-9dad-41d1-80b4-00c04fd430c8 > thread.jsonl",
		Args:    wrong(cobra.NoArgs), RunE: list,
	}
	lists := &cobra.Command{Use: "list", Short: "Lists threads, the last active first", Args: wrong(cobra.NoArgs), RunE: list}
	show := &cobra.Command{
		Use: "show THREAD", Short: "Shows the messages of a thread, which is a UUID or a key", Args: wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return operate(c, path, func(ctx context.Context, client *operator.Client) error {
				return eachMessage(ctx, client, args[0], func(_ operator.Thread, m threads.Message) error { return printMessage(c.OutOrStdout(), m, asJSON) })
			})
		},
	}
	export := &cobra.Command{
		Use: "export THREAD", Short: "Writes the messages of a thread in the form that parley import reads", Args: wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			return operate(c, path, func(ctx context.Context, client *operator.Client) error {
				return eachMessage(ctx, client, args[0], func(t operator.Thread, m threads.Message) error { return exportMessage(c.OutOrStdout(), t, m) })
			})
		},
	}
	c.PersistentFlags().StringVar(&path, "config", "", "the configuration file (default "+ifExists+")")
	c.PersistentFlags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	for _, one := range []*cobra.Command{c, lists} {
		one.Flags().StringVar(&workspace, "workspace", "", "only the threads of this workspace")
		one.Flags().IntVar(&limit, "limit", 50, "the greatest number of threads")
	}
	c.AddCommand(lists, show, export)
	return c
}

func printThreads(out io.Writer, items []operator.Thread, now time.Time) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, t := range items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\n", t.Key, t.Workspace, age(now, t.LastAt), t.Messages, t.Title)
	}
	return w.Flush()
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

func printMessage(out io.Writer, m threads.Message, asJSON bool) error {
	if asJSON {
		return printJSON(out, m)
	}
	verdict := string(m.Trigger)
	if m.Reason != "" {
		verdict += " (" + m.Reason + ")"
	}
	_, err := fmt.Fprintf(out, "%d  %s  %s  %s\n%s\n\n", m.ThreadSeq, m.CreatedAt.Local().Format(time.DateTime), m.SenderID, verdict, m.Content)
	return err
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
// platform. Notices and deleted messages are left out.
func exportMessage(out io.Writer, t operator.Thread, m threads.Message) error {
	if m.Kind != "" || m.DeletedAt != nil || m.Role == "system" {
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
