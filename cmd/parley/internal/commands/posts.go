package commands

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
)

// newPost are the flags of the command that posts.
type newPost struct {
	shared
	operator.NewPost
}

func postCommand() *cobra.Command {
	p := &newPost{}
	c := p.Command("post --workspace W --to CHANNEL TEXT", "Posts a text where nobody has asked, in the name of the place's agent", wrong(cobra.ExactArgs(1)), p.post)
	c.Long = c.Short + ". parley why ID tells what has become of it."
	c.Example = "  parley post --workspace acme --to C06RY3YBSLE '**Rain** today'\n  parley post --workspace acme --thread slack:acme:C06RY3YBSLE:1700000000.000100 --key rain 'It has stopped.'"
	c.Flags().StringVar(&p.Workspace, "workspace", "", "the workspace; required")
	c.Flags().StringVar(&p.Channel, "to", "", "the platform's id of the channel")
	c.Flags().StringVar(&p.User, "user", "", "a person instead, by the platform's id")
	c.Flags().StringVar(&p.Thread, "thread", "", "a thread instead, by its UUID or key")
	c.Flags().StringVar(&p.NewPost.Post, "key", "", "the same key is the same post")
	return c
}

func (p *newPost) post(ctx context.Context, c *cobra.Command, client *operator.Client, args []string) error {
	n := p.NewPost
	n.Content = args[0]
	if n.Thread != "" {
		n.Channel, n.User = "", ""
	}
	made, err := client.Speak(ctx, n)
	switch {
	case err != nil:
		return err
	case p.JSON:
		return printJSON(c.OutOrStdout(), made)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "post %s in thread %s is %s\n", made.ID, made.ThreadID, made.State)
	return err
}
