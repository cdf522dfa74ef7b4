package slack

import (
	"context"
	"net/url"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/slack/payload"
	"parley/ingest/wake"
)

var _ adapters.Backfiller = (*Adapter)(nil)

const (
	// backgroundPerMinute bounds the background's calls of one method that reads history,
	// counted with the urgent ones: four fifths of the calls per minute that Slack
	// guarantees (tier 3). Slack often allows more, so urgent calls wait for its refusal
	// only.
	// https://docs.slack.dev/apis/web-api/rate-limits
	backgroundPerMinute = 40
	// backgroundBurst is the number of calls in a minute from which the background keeps a
	// steady pace, so that urgent calls soon after a gap find more than a fifth.
	backgroundBurst = 20
	// paceWindow is Slack's minute and one second more, because the latency of calls
	// varies.
	paceWindow = time.Minute + time.Second
	// historyPage is the number of messages or channels that one call reads. Slack advises
	// at most 200.
	// https://docs.slack.dev/reference/methods/conversations.history#arguments
	historyPage = "200"
	// memberTypes are the kinds of channels that a bot can be in.
	// https://docs.slack.dev/reference/methods/users.conversations#arguments
	memberTypes = "public_channel,private_channel,mpim,im"
)

// history is the state of backfill. The zero value is ready.
type history struct {
	paces sync.Map // of *pace, by method
	kinds sync.Map // of each channel's type in Slack's terms, by channel id
}

// wireConversation has a channel's name and the fields that define its type.
// https://docs.slack.dev/reference/objects/conversation-object
type wireConversation struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	IsIM      bool   `json:"is_im"`
	IsMPIM    bool   `json:"is_mpim"`
	IsPrivate bool   `json:"is_private"`
}

// kind returns the type in the terms of Slack's events.
func (c wireConversation) kind() string {
	switch {
	case c.IsIM:
		return "im"
	case c.IsMPIM:
		return "mpim"
	case c.IsPrivate:
		return "group"
	}
	return "channel"
}

// Channels returns the channels and conversations that have the bot as a member. It
// skips the kinds that the app may not list. If the app may list no kind, it returns a
// *adapters.RefusedError.
func (a *Adapter) Channels(ctx context.Context) ([]string, error) {
	channels, err := a.members(ctx, memberTypes)
	if refusedCode(err) != "missing_scope" {
		return channels, err
	}
	var denied error
	for _, kind := range [...]string{"public_channel", "private_channel", "mpim", "im"} {
		some, err := a.members(ctx, kind)
		switch {
		case refusedCode(err) == "missing_scope":
			denied = err
		case err != nil:
			return nil, err
		}
		channels = append(channels, some...)
	}
	if len(channels) == 0 {
		return nil, denied
	}
	return channels, nil
}

func (a *Adapter) members(ctx context.Context, kinds string) (channels []string, err error) {
	query := url.Values{"types": {kinds}, "exclude_archived": {"true"}, "limit": {historyPage}}
	err = eachPage(query, func() (next string, err error) {
		var page struct {
			wireAnswer
			Channels []wireConversation `json:"channels"`
		}
		if err := a.paced(ctx, nil, "users.conversations", query, &page); err != nil {
			return "", err
		}
		for _, c := range page.Channels {
			if payload.IsID(c.ID) {
				a.history.kinds.Store(c.ID, c.kind())
				channels = append(channels, c.ID)
			}
		}
		return page.next(query), nil
	})
	return channels, err
}

// kind returns a channel's type in Slack's terms. A backfilled payload must carry it,
// because a group conversation's id does not reveal the type.
func (a *Adapter) kind(ctx context.Context, urgent <-chan struct{}, channel string) (string, error) {
	if kind, ok := a.history.kinds.Load(channel); ok {
		return kind.(string), nil
	}
	var answer struct {
		wireAnswer
		Channel wireConversation `json:"channel"`
	}
	if err := a.paced(ctx, urgent, "conversations.info", url.Values{"channel": {channel}}, &answer); err != nil {
		return "", err
	}
	a.history.kinds.Store(channel, answer.Channel.kind())
	return answer.Channel.kind(), nil
}

// paced makes a call as soon as the method's pace allows it, and again after each rate
// limit. The call is the background's until urgent is closed. If only the operator can fix a
// refusal, the error is a *adapters.RefusedError.
func (a *Adapter) paced(ctx context.Context, urgent <-chan struct{}, method string, query url.Values, answer answer) error {
	for p := a.pace(method); ; {
		if err := p.wait(ctx, urgent); err != nil {
			return err
		}
		err := a.call(ctx, method, query, answer)
		after, limited := adapters.RetryAfter(err)
		if !limited {
			return markRefusedHistory(method, err)
		}
		if !wake.After(ctx, after) {
			return ctx.Err()
		}
	}
}

// ask makes an urgent call at once. While Slack's rate limit lasts, the error is a
// *adapters.SendError with the failure RateLimited.
func (a *Adapter) ask(ctx context.Context, method string, query url.Values, answer answer) error {
	a.pace(method).take(time.Now(), true)
	return a.call(ctx, method, query, answer)
}

// pace returns the pace of a method.
func (a *Adapter) pace(method string) *pace {
	known, _ := a.history.paces.LoadOrStore(method, new(pace))
	return known.(*pace)
}

// Inherit takes over the paces, the rate limits and the identity of the workspace's previous
// adapter, if that one has the same token.
func (a *Adapter) Inherit(old adapters.Adapter) {
	if old, ok := old.(*Adapter); ok && old.config.BotToken.Equal(a.config.BotToken.Reveal()) {
		a.history, a.web.rests = old.history, old.web.rests
		a.self.Store(old.self.Load())
	}
}

// pace spaces the background's calls of one method. It counts the calls of this node alone. The
// zero value has counted no call.
type pace struct {
	mu    sync.Mutex
	calls []time.Time // times of the last minute's calls, oldest first
}

// wait blocks until the next call is allowed, and counts that call. The call is the
// background's until urgent is closed.
func (p *pace) wait(ctx context.Context, urgent <-chan struct{}) error {
	for hurried := false; ctx.Err() == nil; {
		wait := p.take(time.Now(), hurried)
		if wait <= 0 {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-urgent:
			hurried, urgent = true, nil
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

// take counts a call and returns 0 if the call is allowed. Otherwise it returns the time
// until the call may be allowed.
func (p *pace) take(now time.Time, urgent bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.calls) > 0 && now.Sub(p.calls[0]) >= paceWindow {
		p.calls = p.calls[1:]
	}
	wait := time.Duration(0)
	if n := len(p.calls); n >= backgroundPerMinute && !urgent {
		wait = p.calls[n-backgroundPerMinute].Add(paceWindow).Sub(now)
	} else if n >= backgroundBurst && !urgent {
		wait = p.calls[n-1].Add(paceWindow / backgroundPerMinute).Sub(now)
	}
	if wait > 0 {
		return wait
	}
	p.calls = append(p.calls, now)
	return 0
}
