package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slack-go/slack"

	"parley/adapters"
	"parley/ingest/event"
)

const (
	// findPage is how many messages one call reads; Slack advises at most 200.
	// https://docs.slack.dev/reference/methods/conversations.history#arguments
	findPage = "200"
	// clockSlack is how far Slack's clock may be behind ours.
	clockSlack = time.Second
)

// Find reads the thread, or the conversation, from just before post.NotBefore to
// its end, and looks among our own messages for the one that carries the post's
// key. Any failure on the way is an error: a page that could not be read may
// hold it.
func (a *Adapter) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	self, err := a.knownSelf(ctx)
	if err != nil {
		return "", false, err
	}
	query := url.Values{"channel": {post.To.Channel}, "limit": {findPage}, "include_all_metadata": {"true"}}
	if !post.NotBefore.IsZero() {
		from := post.NotBefore.Add(-clockSlack)
		query.Set("oldest", fmt.Sprintf("%d.%06d", from.Unix(), from.Nanosecond()/1000))
	}
	ts := ""
	if post.To.Root != "" {
		query.Set("ts", post.To.Root)
		ts, err = a.scan(ctx, "conversations.replies", query, self, post.Key)
		query.Del("ts")
	}
	// Where a thread's root is gone, Slack puts the reply into the channel.
	var answer slack.SlackErrorResponse
	if rootless := errors.As(err, &answer) && answer.Err == "thread_not_found"; rootless || post.To.Root == "" {
		ts, err = a.scan(ctx, "conversations.history", query, self, post.Key)
	}
	if err != nil {
		return "", false, fmt.Errorf("look for a post in slack channel %s: %w", post.To.Channel, err)
	}
	return post.To.Channel + "/" + ts, ts != "", nil
}

// knownSelf is who we are, asked of Slack where Run has not yet.
func (a *Adapter) knownSelf(ctx context.Context) (event.Self, error) {
	if self := a.self.Load(); self != nil {
		return *self, nil
	}
	return a.askSelf(ctx)
}

// foundMessage is what of a message tells a post of ours.
type foundMessage struct {
	TS       string          `json:"ts"`
	User     string          `json:"user"`
	BotID    string          `json:"bot_id"`
	Metadata json.RawMessage `json:"metadata"`
}

// messagePage is one answer of conversations.history or conversations.replies.
type messagePage struct {
	slack.SlackResponse
	Messages []json.RawMessage `json:"messages"`
	HasMore  bool              `json:"has_more"`
}

// scan reads page after page and returns the ts of our message with the key, or
// an empty text where there is none.
func (a *Adapter) scan(ctx context.Context, method string, query url.Values, self event.Self, key string) (string, error) {
	query.Del("cursor")
	for {
		page, err := a.page(ctx, method, query)
		if err != nil {
			return "", err
		}
		for _, raw := range page.Messages {
			var m foundMessage
			if json.Unmarshal(raw, &m) != nil {
				continue // none of ours: those have every field in its form
			}
			ours := same(m.User, self.UserID) || same(m.BotID, self.BotID)
			if ours && deliveryKey(m.Metadata) == key {
				return m.TS, nil
			}
		}
		next := page.ResponseMetadata.Cursor
		switch {
		case next == "" && !page.HasMore:
			return "", nil
		case next == "" || next == query.Get("cursor"):
			return "", errors.New("slack tells of further messages and not how to read them")
		}
		query.Set("cursor", next)
	}
}

// page makes one call. It decodes by itself what slack-go would decode whole: a
// block of somebody else's message that the library can't read must not hide ours.
func (a *Adapter) page(ctx context.Context, method string, query url.Values) (*messagePage, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath(method).String(), strings.NewReader(query.Encode()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+a.config.BotToken.Reveal())
	response, err := a.web.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	var page messagePage
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil {
		return nil, fmt.Errorf("%s: decode the answer: %w", method, err)
	}
	if !page.Ok {
		return nil, fmt.Errorf("%s: %w", method, slack.SlackErrorResponse{Err: firstOf(page.Error, "no reason given")})
	}
	return &page, nil
}
