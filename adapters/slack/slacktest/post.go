package slacktest

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// Post is one message in a channel, as it stands now.
type Post struct {
	// N counts the posts of the API from 1, in the order in which they took
	// effect; 0 for what Put placed.
	N        int64
	Channel  string
	TS       string
	ThreadTS string // the root, for a reply
	User     string
	BotID    string
	Team     string // the author's; ours if empty
	// Subtype is the message's, such as file_share; mostly empty.
	Subtype string
	Text    string
	// Markdown is what stands in its markdown blocks, one paragraph each, or was
	// given as markdown_text; of a stream, all that was appended.
	Markdown string
	// Blocks and Metadata are the JSON as it was sent; nil for none.
	Blocks   json.RawMessage
	Metadata json.RawMessage
	Files    []string  // ids
	At       time.Time // when it took effect
	// Edits counts its changes, of which EditedTS is the last one that readers are
	// told of; empty for none. What is appended to a stream is no change.
	Edits    int
	EditedTS string
	// Stream says that it began as a stream, and which state that is in.
	Stream  StreamState
	Deleted bool
}

// Shown is what a reader sees: the markdown where there is some, else the text;
// nothing of what was deleted.
func (p Post) Shown() string {
	if p.Deleted {
		return ""
	}
	return cmp.Or(p.Markdown, p.Text)
}

// Key is the text at event_payload.key in the post's metadata.
func (p Post) Key() string {
	var metadata struct {
		Payload struct {
			Key string `json:"key"`
		} `json:"event_payload"`
	}
	_ = json.Unmarshal(p.Metadata, &metadata)
	return metadata.Payload.Key
}

// isReply says that it hangs under another message.
func (p Post) isReply() bool { return p.ThreadTS != "" && p.ThreadTS != p.TS }

// broadcast is the subtype of a reply that its channel shows too.
const broadcast = "thread_broadcast"

// Put places a message that did not come through the API, such as another
// person's, at its TS or at the channel's next one, and returns it with that. What
// was there before is replaced.
func (s *Server) Put(post Post) Post {
	c := s.channel(post.Channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.add(s.options.Now(), post)
}

// Posts returns what came through the API, in the order in which it took effect;
// what was deleted too.
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

// Message returns what stands at that ts, whoever wrote it; false for nothing.
func (s *Server) Message(channel, ts string) (Post, bool) {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := c.find(ts); p != nil {
		return *p, true
	}
	return Post{}, false
}

// Thread returns the messages of a thread that readers see, the root first.
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

// ours is a post of the bot, with the place that the call names.
func (s *Server) ours(form url.Values) Post {
	return Post{Channel: form.Get("channel"), ThreadTS: form.Get("thread_ts"),
		User: s.options.BotUser, BotID: s.options.BotID}
}

// isOurs says that the bot wrote it.
func (s *Server) isOurs(p *Post) bool {
	return p.User == s.options.BotUser || p.BotID == s.options.BotID
}

func (s *Server) postMessage(form url.Values) []byte {
	post := s.ours(form)
	if post.Channel == "" {
		return refusal("channel_not_found")
	}
	what, code := s.readContent(form, maxText)
	if code == "" && what.empty() {
		code = "no_text"
	}
	if code != "" {
		return refusal(code)
	}
	what.write(&post)
	if isTrue(form, "reply_broadcast") && post.ThreadTS != "" {
		post.Subtype = broadcast
	}
	post, code = s.publish(post, nil)
	if code != "" {
		return refusal(code)
	}
	return answerPost(post)
}

// publish puts a post of ours into its channel, as an open stream where there is
// one, and tells everybody who waits for a post. The code is that of a channel
// which takes none.
func (s *Server) publish(post Post, open *stream) (_ Post, code string) {
	c := s.channel(post.Channel)
	c.mu.Lock()
	if code := c.refusesPosts(); code != "" {
		c.mu.Unlock()
		return post, code
	}
	post.N = s.count.Add(1)
	post = c.add(s.options.Now(), post)
	delete(c.statuses, post.ThreadTS) // a message ends the status of its thread
	if open != nil {
		c.streams[post.TS] = open
	}
	if s.options.Echo {
		s.queueEvent(c.messageEvent(s, &post))
	}
	c.mu.Unlock()
	s.tellEvents()
	if s.options.OnPost != nil {
		s.options.OnPost(post)
	}
	s.arrived.L.Lock()
	s.landed++
	s.arrived.Broadcast()
	s.arrived.L.Unlock()
	return post, ""
}

// answerPost is what the methods answer that make or change a message.
func answerPost(post Post) []byte {
	answer := make([]byte, 0, 256+len(post.Text)+2*len(post.Markdown))
	answer = append(answer, `{"ok":true,"channel":`...)
	answer = append(answer, encode(post.Channel)...)
	answer = append(answer, `,"ts":"`+post.TS+`","message":`...)
	answer = post.appendJSON(answer, true)
	return append(answer, "}}"...)
}

// appendJSON writes the message as Slack does, but for the last brace; without
// reflection, since the load tool makes thousands a second.
func (p *Post) appendJSON(b []byte, metadata bool) []byte {
	b = append(b, `{"type":"message"`...)
	b = appendMember(b, "subtype", p.Subtype)
	b = appendMember(b, "user", p.User)
	b = append(b, `,"text":`...)
	b = append(b, encode(cmp.Or(p.Text, p.Markdown))...)
	b = append(b, `,"ts":"`+p.TS+`"`...)
	if p.BotID != "" {
		b = append(b, `,"app_id":"`+App+`"`...)
		b = appendMember(b, "bot_id", p.BotID)
	}
	b = appendMember(b, "team", p.Team)
	b = appendMember(b, "thread_ts", p.ThreadTS)
	b = appendMember(b, "streaming_state", string(p.Stream))
	if p.EditedTS != "" {
		b = append(b, `,"edited":{"user":`...)
		b = append(b, encode(p.User)...)
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

// appendMember writes one more member, where it has a value.
func appendMember(b []byte, name, value string) []byte {
	if value == "" {
		return b
	}
	b = append(b, `,"`+name+`":`...)
	return append(b, encode(value)...)
}

// isTrue reads a flag, which comes as a word or a digit.
func isTrue(form url.Values, name string) bool {
	set, _ := strconv.ParseBool(form.Get(name))
	return set
}
