package adaptertest_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/jsonobject"
	"parley/adapters/markdown"
	"parley/config/secret"
	"parley/ingest/event"
)

// The rest of this file is the adapter of the guide, adapters/README.md; see TestGuideShowsCode.

// Platform describes Corkboard.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: "corkboard", Title: "Corkboard", Normalizer: Normalizer{}, Config: func() adapters.Config { return new(Config) },
		New: func(workspace string, c adapters.Config) adapters.Adapter { return New(workspace, *c.(*Config)) },
	}
}

// Config is the configuration of one account.
type Config struct {
	URL   string       `yaml:"url"` // without a slash at the end
	Token secret.Value `yaml:"token"`
}

// Validate returns every fault by key. The faults contain no configured value.
func (c *Config) Validate() (faults event.FieldErrors) {
	u, err := url.Parse(c.URL)
	faults.Check(err == nil && u.Host != "" && u.User == nil, "url", "must be the server's address without credentials")
	faults.Check(!c.Token.IsZero(), "token", "is required: the bot's token")
	return faults
}

// Accounts returns the values that only one workspace may have.
func (c *Config) Accounts() []adapters.Account {
	return []adapters.Account{{Key: "token", Value: c.Token.Reveal()}}
}

// Normalizer converts events of Corkboard. It has no state.
type Normalizer struct{}

// Keys returns the keys of a payload.
func (Normalizer) Keys(envelope event.Envelope, _ adapters.Facts) event.Keys {
	e, err := read(envelope, "")
	keys := event.Keys{Kind: cmp.Or(e.Kind, event.KindOther), Dedupe: adapters.BodyKey(envelope.Body)}
	switch {
	case err != nil:
		keys.Result = event.Refuse(err)
	case e.Ignored != "":
		keys.Result = event.Ignore(e.Ignored)
	case e.Kind == event.KindDelete:
		keys.MessageID, keys.Dedupe = e.Targets[0], "delete:"+e.Targets[0]
	default:
		keys.MessageID, keys.Dedupe = e.Message.ExternalID, "message:"+e.Message.ExternalID
		keys.Thread, keys.Channel = e.Message.Thread, e.Message.Channel
	}
	return keys
}

// Normalize returns the event of a payload.
func (Normalizer) Normalize(_ context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	return read(envelope, directory.Self().UserID)
}

// read reads a payload. self is our user id; it is empty if unknown.
func read(envelope event.Envelope, self string) (event.Event, error) {
	f, err := jsonobject.Parse(envelope.Body)
	if err != nil {
		return event.Event{}, err
	}
	kind, id, channel, user := f.Text("type"), f.ShortText("id", 64), f.ShortText("channel", 64), f.ShortText("user", 64)
	switch {
	case kind != "message" && kind != "delete":
		return event.Event{Kind: event.KindOther, Ignored: event.ReasonNotAnEvent}, f.Err()
	case id == "" || channel == "" || user == "":
		f.Fault("id", "is required, and so are channel and user")
	case kind == "delete":
		return event.Event{Kind: event.KindDelete, Targets: []string{id}}, f.Err()
	}
	m := &event.Message{
		ExternalID: id, Thread: threadKey(envelope.Workspace, channel), Channel: event.Channel{ID: channel, Type: event.ChannelRoom},
		Content: f.Text("text"), ReplyTo: f.Text("reply_to"), Own: user == self,
		Metadata: event.Metadata{
			Source: "corkboard", SenderID: "corkboard:" + user, SenderDisplayName: user, SenderType: event.Human, ChannelExternalID: channel,
		},
	}
	f.Decode("sent_at", "a time", &m.SentAt)
	if f.Flag("direct") {
		m.Channel.Type, m.Addressed = event.ChannelDirect, event.AddressedDirect
	}
	return event.Event{Kind: event.KindMessage, Message: m}, f.Err()
}

// threadKey returns the key of a thread. Each channel of Corkboard is one thread.
func threadKey(workspace, channel string) event.ThreadKey {
	return event.ThreadKey("corkboard:" + workspace + ":" + channel)
}

// Adapter is one account on Corkboard. It is safe for concurrent use.
type Adapter struct {
	Normalizer
	workspace string
	config    Config
	client    *http.Client
}

var _ adapters.Connector = (*Adapter)(nil)
var _ adapters.Sender = (*Adapter)(nil)

// New returns the adapter of a workspace. The config passed Validate.
func New(workspace string, config Config) *Adapter {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &Adapter{workspace: workspace, config: config, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// Limits returns the pace: a channel takes five posts a second.
func (a *Adapter) Limits() adapters.Limits {
	return adapters.Limits{PostRate: 5, Timeout: 10 * time.Second}
}

// Connections returns one connection, which one node at a time runs.
func (a *Adapter) Connections() []adapters.Connection {
	return []adapters.Connection{{Exclusive: true, Run: a.run}}
}

func (a *Adapter) run(ctx context.Context, inbox adapters.Inbox, link adapters.Link) error {
	defer a.client.CloseIdleConnections()
	self, err := a.call(ctx, http.MethodGet, "/me", nil)
	if err == nil {
		link.Up(event.Self{UserID: self.ID})
	}
	for err == nil {
		err = a.poll(ctx, inbox, link.State)
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// poll accepts the next event, if there is one, and then moves the cursor.
func (a *Adapter) poll(ctx context.Context, inbox adapters.Inbox, state adapters.State) error {
	after, err := state.Get(ctx, "cursor")
	if err != nil {
		return err
	}
	next, err := a.call(ctx, http.MethodGet, "/events?after="+url.QueryEscape(after), nil)
	if err != nil || next.ID == "" {
		return err
	}
	_, err = inbox.Accept(ctx, event.Envelope{
		Workspace: a.workspace, Platform: "corkboard", Transport: "poll", ReceivedAt: time.Now(), Body: []byte(next.Event),
	})
	switch {
	case errors.Is(err, adapters.ErrBusy):
		<-time.After(100 * time.Millisecond) // the next poll returns the same event
		return nil
	case err != nil:
		return err
	}
	return state.Put(ctx, "cursor", next.ID)
}

// Format returns the posts of a text: plain text of at most 2000 characters each.
func (a *Adapter) Format(text string, _ []string) []string {
	return markdown.Format(text, markdown.Plain, 2000)
}

// Address returns the thread's channel. The Place is the id of the answered message.
func (a *Adapter) Address(thread event.ThreadKey, answered string) (adapters.Address, error) {
	channel, ok := strings.CutPrefix(string(thread), string(threadKey(a.workspace, "")))
	if !ok || channel == "" {
		return adapters.Address{}, fmt.Errorf("%q is not a thread of workspace %s on Corkboard", thread, a.workspace)
	}
	return adapters.Address{Channel: channel, Place: answered}, nil
}

// Send posts a text and its file.
func (a *Adapter) Send(ctx context.Context, post adapters.Post) (id string, err error) {
	body := map[string]any{"channel": post.To.Channel, "reply_to": post.To.Place, "key": post.Key, "text": post.Text}
	if post.File != nil {
		content, err := post.File.Content(ctx, 1<<20)
		if err != nil {
			return "", err
		}
		body["file_name"], body["file"] = post.File.Name, content // in base64
	}
	sent, err := a.call(ctx, http.MethodPost, "/posts", body)
	if err == nil && sent.ID == "" {
		err = &adapters.SendError{Failure: adapters.Unclear, Err: errors.New("the answer has no id")}
	}
	return sent.ID, err
}

// answer is an answer of the server. The Event is the JSON of the event with the number ID.
type answer struct{ ID, Event string }

// call makes one call. Its errors are *adapters.SendError.
func (a *Adapter) call(ctx context.Context, method, path string, body map[string]any) (got answer, err error) {
	encoded, _ := json.Marshal(body) // texts and bytes can always be encoded
	var effect atomic.Int64          // a SendFailure: NotSent until there is a connection
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { effect.Store(int64(adapters.Unclear)) }}
	request, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), method, a.config.URL+path, bytes.NewReader(encoded))
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return got, &adapters.SendError{Failure: adapters.NotSent, Err: err}
	}
	request.Header.Set("Authorization", "Bearer "+a.config.Token.Reveal())
	response, err := a.client.Do(request)
	if err != nil {
		return got, &adapters.SendError{Failure: adapters.SendFailure(effect.Load()), Err: err}
	}
	defer response.Body.Close()
	failure := &adapters.SendError{Failure: adapters.Unclear, Err: fmt.Errorf("corkboard answered %s", response.Status)}
	switch status := response.StatusCode; {
	case status == http.StatusOK:
		if failure.Err = json.NewDecoder(io.LimitReader(response.Body, 1<<20)).Decode(&got); failure.Err == nil {
			return got, nil
		}
	case status == http.StatusUnauthorized:
		failure.Failure = adapters.NotSent
		failure.Err = &adapters.RefusedError{Err: failure.Err, Hint: "set corkboard.token to the bot's present token"}
	case status == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		failure.Failure, failure.Scope = adapters.RateLimited, adapters.ScopeChannel
		failure.RetryAfter = time.Duration(max(seconds, 1)) * time.Second
	case status/100 == 4:
		failure.Failure = adapters.Permanent
	}
	return got, failure
}
