package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
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
// key, itself or in the name of its file. Any failure on the way is an error: a page
// that could not be read may hold it.
func (a *Adapter) Find(ctx context.Context, post adapters.Post) (string, bool, error) {
	id := ""
	err := a.ours(ctx, post, func(m foundMessage) bool {
		if m.key() == post.Key {
			id = messageID(post.To.Channel, m.TS)
		}
		return id == ""
	})
	return id, id != "" && err == nil, err
}

// FindStream reads as Find does, and returns our messages without a key.
func (a *Adapter) FindStream(ctx context.Context, post adapters.Post) ([]string, error) {
	var found []string
	from := fromTS(post.NotBefore)
	err := a.ours(ctx, post, func(m foundMessage) bool {
		if m.key() == "" && m.TS >= from { // a thread's root comes with every page
			found = append(found, m.TS)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(found)
	for i, ts := range found {
		found[i] = messageID(post.To.Channel, ts)
	}
	return found, nil
}

// fromTS is where Slack begins to read for messages since a time; empty for the zero
// time.
func fromTS(since time.Time) string {
	if since.IsZero() {
		return ""
	}
	from := since.Add(-clockSlack)
	return fmt.Sprintf("%d.%06d", from.Unix(), from.Nanosecond()/1000)
}

// ours reads our own messages where the post belongs, until see has seen enough.
func (a *Adapter) ours(ctx context.Context, post adapters.Post, see func(foundMessage) bool) error {
	self, err := a.knownSelf(ctx)
	if err != nil {
		return err
	}
	query := url.Values{"channel": {post.To.Channel}, "limit": {findPage}, "include_all_metadata": {"true"}}
	if from := fromTS(post.NotBefore); from != "" {
		query.Set("oldest", from)
	}
	if post.To.Root != "" {
		query.Set("ts", post.To.Root)
		err = a.scan(ctx, "conversations.replies", query, self, see)
		query.Del("ts")
	}
	// Where a thread's root is gone, Slack puts the reply into the channel.
	if post.To.Root == "" || refusedCode(err) == "thread_not_found" {
		err = a.scan(ctx, "conversations.history", query, self, see)
	}
	if err != nil {
		return fmt.Errorf("look for a post in slack channel %s: %w", post.To.Channel, err)
	}
	return nil
}

// knownSelf is who we are, asked of Slack where Run has not yet.
func (a *Adapter) knownSelf(ctx context.Context) (event.Self, error) {
	if self := a.self.Load(); self != nil {
		return *self, nil
	}
	self, _, err := a.authTest(ctx)
	return self, err
}

// foundMessage is what of a message tells a post of ours.
type foundMessage struct {
	TS       string          `json:"ts"`
	User     string          `json:"user"`
	BotID    string          `json:"bot_id"`
	Metadata json.RawMessage `json:"metadata"`
	Files    []struct {
		Name string `json:"name"`
	} `json:"files"`
}

// key is that of the delivery which the message is; empty for none.
func (m foundMessage) key() string {
	key := deliveryKey(m.Metadata)
	for i := 0; i < len(m.Files) && key == ""; i++ {
		key = fileKey(m.Files[i].Name)
	}
	return key
}

// messagePage is one answer of conversations.history or conversations.replies.
type messagePage struct {
	wireAnswer
	Messages []json.RawMessage `json:"messages"`
	HasMore  bool              `json:"has_more"`
}

// scan reads page after page of our messages, until see has seen enough.
func (a *Adapter) scan(ctx context.Context, method string, query url.Values, self event.Self, see func(foundMessage) bool) error {
	query.Del("cursor")
	for {
		page, err := a.page(ctx, method, query)
		if err != nil {
			return err
		}
		for _, raw := range page.Messages {
			var m foundMessage
			if json.Unmarshal(raw, &m) != nil {
				continue // none of ours: those have every field in its form
			}
			ours := same(m.User, self.UserID) || same(m.BotID, self.BotID)
			if ours && !see(m) {
				return nil
			}
		}
		next := page.ResponseMetadata.Cursor
		switch {
		case next == "" && !page.HasMore:
			return nil
		case next == "" || next == query.Get("cursor"):
			return errors.New("slack tells of further messages and not how to read them")
		}
		query.Set("cursor", next)
	}
}

// page makes one call.
func (a *Adapter) page(ctx context.Context, method string, query url.Values) (*messagePage, error) {
	page := new(messagePage)
	return page, a.call(ctx, method, query, page)
}

// call makes one call and decodes the answer by itself, which slack-go would decode
// whole: a block of somebody's message that the library can't read must not hide the
// others.
func (a *Adapter) call(ctx context.Context, method string, query url.Values, answer answer) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base.JoinPath(method).String(), strings.NewReader(query.Encode()))
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Authorization", "Bearer "+a.config.BotToken.Reveal())
	response, err := a.web.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s: decode the answer: %w", method, err)
	}
	if err := answer.refused(); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return nil
}

// answer is what a method answers; it embeds wireAnswer.
type answer interface{ refused() error }

// wireAnswer is what every answer has.
type wireAnswer struct{ slack.SlackResponse }

func (w *wireAnswer) refused() error {
	if w.Ok {
		return nil
	}
	return slack.SlackErrorResponse{Err: firstOf(w.Error, "no reason given")}
}
