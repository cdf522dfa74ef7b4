package slack

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
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

// wireConversation has the fields that define a channel's type.
// https://docs.slack.dev/reference/objects/conversation-object
type wireConversation struct {
	ID        string `json:"id"`
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
			if isID(c.ID) {
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
		if limited, err := a.counted(ctx, p, method, query, answer); !limited {
			return markRefusedHistory(method, err)
		}
	}
}

// ask makes an urgent call at once, unless Slack's rate limit lasts. Then the error is a
// *adapters.SendError with the failure RateLimited.
func (a *Adapter) ask(ctx context.Context, method string, query url.Values, answer answer) error {
	p := a.pace(method)
	if wait := p.take(time.Now(), true); wait > 0 {
		return &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: wait, Err: fmt.Errorf("%s: Slack allows no call yet", method)}
	}
	_, err := a.counted(ctx, p, method, query, answer)
	return err
}

// counted makes a call that the pace has counted, bounded by the configured timeout. It
// reports whether Slack's rate limit refused the call; later calls then wait.
func (a *Adapter) counted(ctx context.Context, p *pace, method string, query url.Values, answer answer) (limited bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, a.config.Timeout)
	defer cancel()
	err = a.call(ctx, method, query, answer)
	after, limited := rateLimited(method, err)
	if limited {
		p.pauseFor(after)
	}
	return limited, err
}

// rateLimited reports whether err is a rate limit, and how long the caller must wait.
func rateLimited(method string, err error) (after time.Duration, limited bool) {
	if after, limited = adapters.RetryAfter(err); limited {
		return max(after, minRetry), true
	}
	code := refusedCode(err)
	return minRetry, code != "" && refusal(method, code) == adapters.RateLimited
}

// pace returns the pace of a method.
func (a *Adapter) pace(method string) *pace {
	known, _ := a.history.paces.LoadOrStore(method, new(pace))
	return known.(*pace)
}

// Inherit takes over the paces of the workspace's previous adapter, if that one has the
// same token.
func (a *Adapter) Inherit(old adapters.Adapter) {
	if old, ok := old.(*Adapter); ok && old.config.BotToken.Equal(a.config.BotToken.Reveal()) {
		old.history.paces.Range(func(method, pace any) bool {
			a.history.paces.Store(method, pace)
			return true
		})
	}
}

// pace spaces the background's calls of one method, and keeps every call waiting while
// Slack's rate limit lasts. It counts the calls of this node alone. The zero value has
// counted no call.
type pace struct {
	mu        sync.Mutex
	calls     []time.Time // times of the last minute's calls, oldest first
	notBefore time.Time   // the end of Slack's last rate limit
}

// wait blocks until the next call is allowed, and counts that call. The call is the
// background's until urgent is closed.
func (p *pace) wait(ctx context.Context, urgent <-chan struct{}) error {
	hurried := false
	for ctx.Err() == nil {
		select {
		case <-urgent:
			hurried, urgent = true, nil
		default:
		}
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
	wait := p.notBefore.Sub(now)
	if n := len(p.calls); n >= backgroundPerMinute && !urgent {
		wait = max(wait, p.calls[n-backgroundPerMinute].Add(paceWindow).Sub(now))
	} else if n >= backgroundBurst && !urgent {
		wait = max(wait, p.calls[n-1].Add(paceWindow/backgroundPerMinute).Sub(now))
	}
	if wait > 0 {
		return wait
	}
	p.calls = append(p.calls, now)
	return 0
}

// pauseFor delays every later call by the given time from now.
func (p *pace) pauseFor(after time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notBefore = time.Now().Add(after)
}

// timestamp formats a time as a Slack ts.
func timestamp(t time.Time) string { return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/1000) }

// eventCallback wraps an event in the payload in which Slack would have sent it.
func eventCallback(self event.Self, inner []byte) []byte {
	installed := `{"team_id":` + jsonString(self.TeamID) + `,"user_id":` + jsonString(self.UserID) + `,"is_bot":true}`
	return []byte(`{"type":"event_callback","team_id":` + jsonString(self.TeamID) + `,"authorizations":[` + installed + `],"event":` + string(inner) + `}`)
}
