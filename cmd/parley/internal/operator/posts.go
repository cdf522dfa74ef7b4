package operator

import (
	"context"

	"parley/adapters"
	"parley/adapters/web/speak"
	"parley/config"
)

var postRoutes = []Route{
	{Pattern: "POST posts", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var n NewPost
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return s.Speak(c.Context(), c.Write(""), n)
	}},
}

// NewPost is a message that an operator posts without a question before it.
type NewPost struct {
	Workspace string `json:"workspace"`
	// Channel and User are the platform's ids of a channel and a person. Thread is the UUID or the key of a thread. One of
	// them is set.
	Channel string `json:"channel,omitempty"`
	User    string `json:"user,omitempty"`
	Thread  string `json:"thread,omitempty"`
	Content string `json:"content"` // Markdown
	// Post is the idempotency key of the post; empty for none.
	Post string `json:"key,omitempty"`
}

// Speak stores a post in the name of a place's agent. The daemon sends it.
func (s *Service) Speak(ctx context.Context, w Write, n NewPost) (speak.PostView, error) {
	if err := s.needsLive("a post"); err != nil {
		return speak.PostView{}, err
	}
	speech := adapters.Speech{Workspace: n.Workspace, To: adapters.Target{Channel: n.Channel, User: n.User}, Text: n.Content, By: "operator:" + w.By, Key: n.Post}
	if n.Thread != "" {
		t, err := s.Journal.Listing.ThreadOf(ctx, n.Thread)
		if err != nil {
			return speak.PostView{}, err
		}
		speech.To.Thread = t.ID
	}
	faults := speak.Check(speech, false)
	faults.Check(s.Config().Workspace(n.Workspace) != nil, "workspace", "must be a configured workspace")
	if len(faults) > 0 {
		return speak.PostView{}, faults
	}
	return audited(ctx, s, w, "post", n.Workspace, func(ctx context.Context) (speak.PostView, error) {
		p, _, err := s.Live.Outbox.Speak(ctx, speech)
		return speak.View(p), err
	})
}

// Speak asks for a post.
func (c *Client) Speak(ctx context.Context, n NewPost) (speak.PostView, error) {
	return Post[speak.PostView](ctx, c, "posts", n)
}
