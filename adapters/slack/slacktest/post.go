package slacktest

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"time"

	"parley/adapters/slack/slacktest/internal/content"
	"parley/adapters/slack/slacktest/internal/wire"
)

// Post is the current state of one message in a channel.
type Post struct {
	// N numbers the posts of the API from 1, in the order in which they took effect. It is 0
	// for a message of Put.
	N        int64
	Channel  string
	TS       string
	ThreadTS string // the root, for a reply
	User     string
	BotID    string
	Team     string // the author's; ours if empty
	// Subtype is the message's subtype, such as file_share; usually empty.
	Subtype string
	Text    string
	// Markdown is the text of the markdown blocks, one paragraph each, or the markdown_text.
	// For a stream, it is all text so far.
	Markdown string
	// Blocks and Metadata are the JSON of the call; nil if absent.
	Blocks   json.RawMessage
	Metadata json.RawMessage
	Files    []string  // ids
	At       time.Time // when it took effect
	// Edits counts the changes. An addition to a stream is not a change. EditedTS is the time
	// of the last change that readers can see; empty if there is none.
	Edits    int
	EditedTS string
	// Stream is the state of a message that began as a stream.
	Stream  StreamState
	Deleted bool
}

// Shown returns the text that a reader sees: the markdown if there is any, else the text. It
// is empty for a deleted message.
func (p Post) Shown() string {
	if p.Deleted {
		return ""
	}
	return cmp.Or(p.Markdown, p.Text)
}

// Key returns the text at event_payload.key in the post's metadata.
func (p Post) Key() string {
	var metadata struct {
		Payload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	}
	_ = json.Unmarshal(p.Metadata, &metadata)
	return metadata.Payload.Key
}

// isReply reports whether the post is a reply.
func (p Post) isReply() bool { return p.ThreadTS != "" && p.ThreadTS != p.TS }

// broadcast is the subtype of a reply that is also shown in its channel.
const broadcast = "thread_broadcast"

// Put stores a message that did not come through the API, such as another person's. It uses
// the post's TS, or else the channel's next one, and returns the message with it. It replaces
// a message with the same TS.
func (s *Server) Put(post Post) Post {
	c := s.channel(post.Channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(s.options.Now(), post)
}

// Posts returns the messages from the API in the order in which they took effect, including
// deleted ones.
func (s *Server) Posts() []Post {
	var all []Post
	for _, c := range s.allChannels() {
		c.mu.Lock()
		for _, p := range c.posts {
			if p.N > 0 {
				all = append(all, p)
			}
		}
		c.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Post) int { return cmp.Compare(a.N, b.N) })
	return all
}

// Message returns the message of any author at ts, or false if there is none.
func (s *Server) Message(channel, ts string) (Post, bool) {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.find(ts); p != nil {
		return *p, true
	}
	return Post{}, false
}

// Thread returns the visible messages of a thread, the root first.
func (s *Server) Thread(channel, root string) (thread []Post) {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	from, _ := c.search(root)
	for _, p := range c.posts[from:] {
		if !p.Deleted && (p.TS == root || p.ThreadTS == root) {
			thread = append(thread, p)
		}
	}
	return thread
}

// ours returns an empty post of the bot in the channel and thread of the call.
func (s *Server) ours(form url.Values) Post {
	return Post{Channel: form.Get("channel"), ThreadTS: form.Get("thread_ts"),
		User: s.options.BotUser, BotID: s.options.BotID}
}

// isOurs reports whether the bot wrote the message.
func (s *Server) isOurs(p *Post) bool {
	return p.User == s.options.BotUser || p.BotID == s.options.BotID
}

func (s *Server) postMessage(form url.Values) []byte {
	post := s.ours(form)
	if post.Channel == "" {
		return wire.Refusal("channel_not_found")
	}
	what, code := content.Read(form, content.MaxText, s.options.refuses)
	if code == "" && what.Empty() {
		code = "no_text"
	}
	if code != "" {
		return wire.Refusal(code)
	}
	writeContent(what, &post)
	if wire.IsTrue(form, "reply_broadcast") && post.ThreadTS != "" {
		post.Subtype = broadcast
	}
	post, code = s.publish(post, nil)
	if code != "" {
		return wire.Refusal(code)
	}
	return postResponse(post)
}

// publish adds a post of ours to its channel, as an open stream if open is not nil, and
// reports it to all waiting callers. The code is the refusal of the channel, or empty.
func (s *Server) publish(post Post, open *stream) (_ Post, code string) {
	c := s.channel(post.Channel)
	c.mu.Lock()
	if code := c.refusesPosts(); code != "" {
		c.mu.Unlock()
		return post, code
	}
	post.N = s.count.Add(1)
	post = c.add(s.options.Now(), post)
	delete(c.statuses, post.ThreadTS) // a message clears the status of its thread
	if open != nil {
		c.streams[post.TS] = open
	}
	if s.options.Echo {
		s.queueEvent(c.messageEvent(s, &post))
	}
	c.mu.Unlock()
	s.sendEvents()
	if s.options.OnPost != nil {
		s.options.OnPost(post)
	}
	s.arrived.L.Lock()
	s.landed++
	s.arrived.Broadcast()
	s.arrived.L.Unlock()
	return post, ""
}

// postResponse returns the response of the methods that create or change a message.
func postResponse(post Post) []byte {
	answer := make([]byte, 0, 256+len(post.Text)+2*len(post.Markdown))
	answer = append(answer, `{"ok":true,"channel":`...)
	answer = append(answer, wire.Encode(post.Channel)...)
	answer = append(answer, `,"ts":"`+post.TS+`","message":`...)
	answer = post.appendJSON(answer, true)
	return append(answer, "}}"...)
}

// appendJSON appends the message as Slack writes it, without the last brace. It does not use
// reflection, because the load tool needs thousands of messages per second.
func (p *Post) appendJSON(b []byte, metadata bool) []byte {
	b = append(b, `{"type":"message"`...)
	b = wire.AppendMember(b, "subtype", p.Subtype)
	b = wire.AppendMember(b, "user", p.User)
	b = append(b, `,"text":`...)
	b = append(b, wire.Encode(cmp.Or(p.Text, p.Markdown))...)
	b = append(b, `,"ts":"`+p.TS+`"`...)
	if p.BotID != "" {
		b = append(b, `,"app_id":"`+App+`"`...)
		b = wire.AppendMember(b, "bot_id", p.BotID)
	}
	b = wire.AppendMember(b, "team", p.Team)
	b = wire.AppendMember(b, "thread_ts", p.ThreadTS)
	b = wire.AppendMember(b, "streaming_state", string(p.Stream))
	if p.EditedTS != "" {
		b = append(b, `,"edited":{"user":`...)
		b = append(b, wire.Encode(p.User)...)
		b = append(b, `,"ts":"`+p.EditedTS+`"}`...)
	}
	if p.Blocks != nil {
		b = append(b, `,"blocks":`...)
		b = append(b, p.Blocks...)
	}
	if metadata && p.Metadata != nil {
		b = append(b, `,"metadata":`...)
		b = append(b, p.Metadata...)
	}
	return b
}

// writeContent replaces the content of the post.
func writeContent(c content.Content, post *Post) {
	post.Text, post.Markdown, post.Blocks = "", "", nil
	if c.Text != nil {
		post.Text = *c.Text
	}
	if c.Markdown != nil {
		post.Markdown = *c.Markdown
	}
	if string(c.Blocks) != "[]" {
		post.Blocks = c.Blocks
	}
	writeMetadata(c, post)
}

// writeMetadata replaces the post's metadata. It keeps the old metadata if none was sent, and
// removes it if an empty object was sent.
func writeMetadata(c content.Content, post *Post) {
	switch string(c.Metadata) {
	case "":
	case "{}":
		post.Metadata = nil
	default:
		post.Metadata = c.Metadata
	}
}
