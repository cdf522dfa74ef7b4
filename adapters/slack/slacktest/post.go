package slacktest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxText is where Slack cuts a text off, in characters; the fake refuses it.
// https://docs.slack.dev/reference/methods/chat.postMessage#truncating
const maxText = 40_000

// Post is one message in a channel.
type Post struct {
	// N counts the posts of the API from 1, in the order in which they took
	// effect; 0 for what Put placed.
	N        int64
	Channel  string
	TS       string
	ThreadTS string // the root, for a reply
	User     string
	BotID    string
	Text     string
	// Metadata is the JSON as it was sent; nil for none.
	Metadata json.RawMessage
	At       time.Time // when it took effect
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

// channel holds its messages in the order of their ts.
type channel struct {
	mu    sync.Mutex
	posts []Post
	last  int64  // the newest ts, in microseconds
	name  string // set by AddChannel
	im    bool
}

// channel returns the channel of that id; every id is one.
func (s *Server) channel(id string) *channel {
	s.mu.RLock()
	c := s.channels[id]
	s.mu.RUnlock()
	if c != nil {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channels[id] == nil {
		s.channels[id] = &channel{}
	}
	return s.channels[id]
}

// add keeps the post, with the channel's next ts where it has none of its own.
func (c *channel) add(now time.Time, post Post) Post {
	c.mu.Lock()
	defer c.mu.Unlock()
	post.At = now
	if post.TS == "" {
		c.last = max(now.UnixMicro(), c.last+1)
		post.TS = Timestamp(time.UnixMicro(c.last))
		c.posts = append(c.posts, post)
		return post
	}
	at, found := slices.BinarySearchFunc(c.posts, post.TS, func(p Post, ts string) int { return compareTS(p.TS, ts) })
	if found {
		c.posts[at] = post
	} else {
		c.posts = slices.Insert(c.posts, at, post)
	}
	seconds, _ := strconv.ParseFloat(post.TS, 64)
	c.last = max(c.last, int64(math.Round(seconds*1e6)))
	return post
}

// Timestamp writes a time as Slack's ts: seconds and six digits.
func Timestamp(t time.Time) string {
	micro := t.UnixMicro()
	return strconv.FormatInt(micro/1e6, 10) + fmt.Sprintf(".%06d", micro%1e6)
}

// Put places a message that did not come through the API, such as another
// person's, at its TS or at the channel's next one, and returns it with that. What
// was there before is replaced.
func (s *Server) Put(post Post) Post {
	return s.channel(post.Channel).add(s.options.Now(), post)
}

// Posts returns what came through the API, in the order in which it took effect.
func (s *Server) Posts() []Post {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Post
	for _, c := range s.channels {
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

func (s *Server) postMessage(form url.Values) []byte {
	post := Post{
		Channel: form.Get("channel"), ThreadTS: form.Get("thread_ts"), Text: form.Get("text"),
		User: s.options.BotUser, BotID: s.options.BotID,
	}
	switch {
	case post.Channel == "":
		return refusal("channel_not_found")
	case post.Text == "":
		return refusal("no_text")
	case utf8.RuneCountInString(post.Text) > maxText:
		return refusal("msg_too_long")
	}
	if metadata := form.Get("metadata"); metadata != "" {
		if !validMetadata(metadata) {
			return refusal("invalid_metadata_format")
		}
		post.Metadata = json.RawMessage(metadata)
	}
	post.N = s.count.Add(1)
	post = s.channel(post.Channel).add(s.options.Now(), post)
	if s.options.OnPost != nil {
		s.options.OnPost(post)
	}
	s.arrived.L.Lock()
	s.landed++
	s.arrived.Broadcast()
	s.arrived.L.Unlock()

	answer := make([]byte, 0, 256+len(post.Text))
	answer = append(answer, `{"ok":true,"channel":`...)
	answer = append(answer, encode(post.Channel)...)
	answer = append(answer, `,"ts":"`+post.TS+`","message":`...)
	answer = post.appendJSON(answer, true)
	return append(answer, '}')
}

// validMetadata checks the form that Slack asks for.
// https://docs.slack.dev/messaging/message-metadata
func validMetadata(raw string) bool {
	var metadata struct {
		Type    string          `json:"event_type"`
		Payload json.RawMessage `json:"event_payload"`
	}
	err := json.Unmarshal([]byte(raw), &metadata)
	return err == nil && metadata.Type != "" && strings.HasPrefix(string(metadata.Payload), "{")
}

// appendJSON writes the message as Slack does; without reflection, since the
// load tool makes thousands a second.
func (p Post) appendJSON(b []byte, metadata bool) []byte {
	b = append(b, `{"type":"message","user":`...)
	b = append(b, encode(p.User)...)
	b = append(b, `,"text":`...)
	b = append(b, encode(p.Text)...)
	b = append(b, `,"ts":"`+p.TS+`"`...)
	if p.BotID != "" {
		b = append(b, `,"app_id":"`+App+`","bot_id":`...)
		b = append(b, encode(p.BotID)...)
	}
	if p.ThreadTS != "" {
		b = append(b, `,"thread_ts":`...)
		b = append(b, encode(p.ThreadTS)...)
	}
	if metadata && p.Metadata != nil {
		b = append(b, `,"metadata":`...)
		b = append(b, p.Metadata...)
	}
	return append(b, '}')
}
