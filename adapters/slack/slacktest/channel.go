package slacktest

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"
)

// channel contains the state of a conversation. Its messages are in the order of their ts.
type channel struct {
	id        string
	mu        sync.Mutex
	info      Channel
	posts     []Post
	last      int64                 // the newest ts, in microseconds
	threads   map[string]*thread    // by the root's ts
	streams   map[string]*stream    // the open ones, by ts
	reactions map[string][]Reaction // by the message's ts
	statuses  map[string]status     // by the thread's ts
	next      time.Time             // the earliest time of the next post
}

// thread contains the data about its replies that a root shows.
type thread struct {
	count  int
	latest string
	users  []string
}

// channel returns the channel with that id. It creates the channel if there is none.
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
		s.channels[id] = &channel{id: id, info: Channel{ID: id}, threads: map[string]*thread{},
			streams: map[string]*stream{}, reactions: map[string][]Reaction{}, statuses: map[string]status{}}
	}
	return s.channels[id]
}

// allChannels returns the present channels in the order of their ids. Code that holds a
// channel's lock may take the server's lock, so no code does the reverse.
func (s *Server) allChannels() []*channel {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*channel, 0, len(s.channels))
	for _, c := range s.channels {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *channel) int { return strings.Compare(a.id, b.id) })
	return all
}

// newTS returns a new ts, which is later than those before it and not before now.
func (c *channel) newTS(now time.Time) string {
	c.last = max(now.UnixMicro(), c.last+1)
	return Timestamp(time.UnixMicro(c.last))
}

// add stores the post. A post without a ts gets the channel's next one.
func (c *channel) add(now time.Time, post Post) Post {
	post.At = now
	if post.TS == "" {
		post.TS = c.newTS(now)
		c.posts = append(c.posts, post)
	} else if at, found := c.search(post.TS); found {
		c.posts[at] = post
		return post
	} else {
		c.posts = slices.Insert(c.posts, at, post)
		c.last = max(c.last, microseconds(post.TS))
	}
	if post.isReply() {
		c.answer(&post)
	}
	return post
}

// answer adds a reply to its root's count.
func (c *channel) answer(reply *Post) {
	t := c.threads[reply.ThreadTS]
	if t == nil {
		t = &thread{}
		c.threads[reply.ThreadTS] = t
	}
	t.count++
	if compareTS(reply.TS, t.latest) > 0 {
		t.latest = reply.TS
	}
	if len(t.users) < maxReplyUsers && !slices.Contains(t.users, reply.User) {
		t.users = append(t.users, reply.User)
	}
}

// maxReplyUsers bounds the users that a root lists as authors of its replies.
// https://docs.slack.dev/messaging/retrieving-messages#threading
const maxReplyUsers = 5

// unanswer removes a deleted reply from its root's count.
func (c *channel) unanswer(reply *Post) {
	t := c.threads[reply.ThreadTS]
	if t == nil {
		return
	}
	if t.count--; t.count == 0 {
		delete(c.threads, reply.ThreadTS)
		return
	}
	for i := len(c.posts) - 1; i >= 0; i-- {
		if p := &c.posts[i]; p.ThreadTS == reply.ThreadTS && p.isReply() && !p.Deleted {
			t.latest = p.TS
			return
		}
	}
}

// search returns the index of the message at ts, or the index where it would be inserted.
func (c *channel) search(ts string) (int, bool) {
	return sort.Find(len(c.posts), func(i int) int { return compareTS(ts, c.posts[i].TS) })
}

// rootUser returns the author of the root above a message at ts; empty if the message is no reply.
func (c *channel) rootUser(ts, root string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, there := c.search(root); there && root != ts {
		return c.posts[at].User
	}
	return ""
}

// find returns the message at ts. The pointer is valid while the channel is locked. It is nil
// if there is no message or it was deleted.
func (c *channel) find(ts string) *Post {
	at, found := c.search(ts)
	if !found || c.posts[at].Deleted {
		return nil
	}
	return &c.posts[at]
}

// Timestamp formats a time as Slack's ts: seconds and six digits.
func Timestamp(t time.Time) string {
	micro := t.UnixMicro()
	return strconv.FormatInt(micro/1e6, 10) + fmt.Sprintf(".%06d", micro%1e6)
}

// microseconds parses a ts, whose fraction may have fewer than six digits. It returns 0 for
// an invalid one.
func microseconds(ts string) int64 {
	whole, fraction, _ := strings.Cut(ts, ".")
	seconds, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return 0
	}
	micro, _ := strconv.ParseInt((fraction + "000000")[:6], 10, 64)
	return seconds*1e6 + micro
}

// isTimestamp reports whether ts is a number, with or without a fraction.
func isTimestamp(ts string) bool {
	_, err := strconv.ParseFloat(ts, 64)
	return err == nil
}

// compareTS orders timestamps by their number. The empty string is the first.
func compareTS(a, b string) int {
	if isFull(a) && isFull(b) {
		return strings.Compare(a, b)
	}
	x, y := microseconds(a), microseconds(b)
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// isFull reports whether the ts has ten digits before the point and six after it, as every ts
// until the year 2286.
func isFull(ts string) bool { return len(ts) == 17 && ts[10] == '.' }
