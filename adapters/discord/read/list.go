package read

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

const (
	// alikeFor bounds the time between two posts that look alike, such as the files of one reply.
	// A busy channel has many messages, and reading all of them would take longer than a call may.
	alikeFor = 10 * time.Minute
	// clockSkew is the maximum time by which Discord's clock may be behind ours.
	clockSkew = time.Second
)

// List implements adapters.Lister: fetched messages carry no nonce, so it compares the texts of our
// own messages. It stops reading alikeFor behind the first of them.
func (r *Reader) List(ctx context.Context, post adapters.Post) (ids []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	self, err := r.knownSelf(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a post: %w", err)
	}
	if post, err = payload.Placed(ctx, r.memory.State, post); err != nil {
		return nil, fmt.Errorf("look for a post: %w", err)
	}
	err = r.eachMessage(ctx, post.To.Channel, post.NotBefore.Add(-clockSkew), func(m historyMessage) bool {
		if m.Author.ID == self && m.shows(post) {
			ids = append(ids, m.ID)
		}
		return len(ids) == 0 || payload.TimeOf(m.ID).Sub(payload.TimeOf(ids[0])) < alikeFor
	})
	if err != nil && call.Code(err) != discordgo.ErrCodeUnknownChannel { // the thread was never opened
		return nil, fmt.Errorf("look for a post in discord channel %s: %w", post.To.Channel, err)
	}
	return ids, nil
}

// Settles implements adapters.Lister.
func (r *Reader) Settles(adapters.Post) time.Duration { return 0 }

// shows reports whether the message has the post's text, and a file if the post has one.
func (m historyMessage) shows(post adapters.Post) bool {
	if strings.TrimSpace(m.Content) != strings.TrimSpace(post.Text) {
		return false
	}
	return post.File == nil && len(m.Attachments) == 0 || post.File != nil && len(m.Attachments) == 1
}
