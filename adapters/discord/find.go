package discord

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
)

const (
	// nonceFor is the time since a post's first call for which Discord surely enforces its
	// nonce. Discord says "the past few minutes".
	// https://docs.discord.com/developers/resources/message#create-message
	nonceFor = 2 * time.Minute
	// alikeFor bounds the time between two posts that look alike, such as the files of one reply.
	// A busy channel has many messages, and reading all of them would take longer than a call may.
	alikeFor = 10 * time.Minute
	// maxNonces bounds each generation of remembered nonces.
	maxNonces = 10_000
)

// nonces are the messages of the latest posts, by nonce: from the answers to the calls and from
// our own events. The zero value knows none.
type nonces struct {
	mu         sync.Mutex
	newer, old map[string]string // ids by nonce, in two generations
}

func (n *nonces) add(nonce, id string) {
	if nonce == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.newer == nil || len(n.newer) >= maxNonces {
		n.old, n.newer = n.newer, map[string]string{}
	}
	n.newer[nonce] = id
}

// find returns the message with a nonce; empty for none.
func (n *nonces) find(nonce string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return cmp.Or(n.newer[nonce], n.old[nonce])
}

// others returns the known messages with other nonces.
func (n *nonces) others(nonce string) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := map[string]bool{}
	for _, all := range []map[string]string{n.old, n.newer} {
		for key, id := range all {
			if key != nonce {
				ids[id] = true
			}
		}
	}
	return ids
}

// noteMessage notes the nonce of a message of ours, and the channel of a direct message.
func (a *accepts) noteMessage(ctx context.Context, p *payload.Payload) error {
	if nonce, id, ok := p.OwnPost(a.guilds.self()); ok {
		a.nonces.add(nonce, id)
	}
	if channel := p.DirectChannel(); channel != "" {
		return a.guilds.rememberDirect(ctx, a.state, channel)
	}
	return nil
}

// Find looks for a post. Our own event, or the answer to an earlier call, names its nonce. Without
// either, other posts may look the same; see List. So while Discord enforces the nonce, Find posts
// again under it if List finds any, which returns the first post.
func (a *Adapter) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	if err := ctx.Err(); err != nil {
		return "", false, err
	}
	if id := a.nonces.find(post.Key); id != "" {
		return id, true, nil
	}
	if a.now().Sub(post.NotBefore) >= nonceFor {
		return "", false, nil
	}
	ids, err := a.List(ctx, post)
	others := a.nonces.others(post.Key)
	if err != nil {
		return "", false, err
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return !others[id] }) {
		a.release(ctx, post)
		return "", false, nil
	}
	id, err := a.Send(ctx, post)
	return id, err == nil, err
}

// List implements adapters.Lister: fetched messages carry no nonce, so it compares the texts of our
// own messages. It stops reading alikeFor behind the first of them.
func (a *Adapter) List(ctx context.Context, post adapters.Post) (ids []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	self, err := a.knownSelf(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for a post: %w", err)
	}
	if post, err = payload.Placed(ctx, a.state, post); err != nil {
		return nil, fmt.Errorf("look for a post: %w", err)
	}
	err = a.eachMessage(ctx, post.To.Channel, post.NotBefore.Add(-clockSkew), func(m historyMessage) bool {
		if m.Author.ID == self && m.shows(post) {
			ids = append(ids, m.ID)
		}
		return len(ids) == 0 || payload.TimeOf(m.ID).Sub(payload.TimeOf(ids[0])) < alikeFor
	})
	if err != nil && refusedCode(err) != discordgo.ErrCodeUnknownChannel { // the thread was never opened
		return nil, fmt.Errorf("look for a post in discord channel %s: %w", post.To.Channel, err)
	}
	return ids, nil
}

// Settles implements adapters.Lister.
func (a *Adapter) Settles(adapters.Post) time.Duration { return 0 }

// shows reports whether the message has the post's text, and a file if the post has one.
func (m historyMessage) shows(post adapters.Post) bool {
	if strings.TrimSpace(m.Content) != strings.TrimSpace(post.Text) {
		return false
	}
	return post.File == nil && len(m.Attachments) == 0 || post.File != nil && len(m.Attachments) == 1
}
