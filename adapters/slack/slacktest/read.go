package slacktest

import (
	"cmp"
	"net/url"
	"strconv"

	"parley/adapters/slack/slacktest/internal/wire"
)

// smallPage is the page size of a Distributed app.
const smallPage = 15

// history is the channel without the replies of its threads, newest first.
// https://docs.slack.dev/reference/methods/conversations.history
func (s *Server) history(form url.Values) []byte {
	return s.read(form, func(c *channel, w window) ([]*Post, string) {
		var found []*Post
		at := len(c.posts)
		if last := cmp.Or(w.cursor, w.latest); last != "" {
			at, _ = c.search(last)
			at = min(at+1, len(c.posts))
		}
		for at--; at >= 0 && len(found) <= w.limit; at-- {
			p := &c.posts[at]
			if w.isPast(p.TS) {
				break
			}
			if w.holds(p.TS) && c.isShown(p) && (!p.isReply() || p.Subtype == broadcast) {
				found = append(found, p)
			}
		}
		return found, ""
	})
}

// replies is one thread, oldest first. The first page begins with the root, regardless of the
// argument oldest.
// https://docs.slack.dev/reference/methods/conversations.replies
func (s *Server) replies(form url.Values) []byte {
	root := form.Get("ts")
	return s.read(form, func(c *channel, w window) ([]*Post, string) {
		var found []*Post
		at, there := c.search(root)
		if there && c.isShown(&c.posts[at]) && w.cursor == "" {
			found = append(found, &c.posts[at])
		}
		if from, _ := c.search(cmp.Or(w.cursor, w.oldest)); from > at {
			at = from
		}
		for ; at < len(c.posts) && len(found) <= w.limit; at++ {
			if p := &c.posts[at]; p.ThreadTS == root && p.TS != root && !p.Deleted && w.holds(p.TS) {
				found = append(found, p)
			}
		}
		if c.threads[root] == nil && len(found) == 0 {
			return nil, "thread_not_found"
		}
		return found, ""
	})
}

// window is the requested part of a channel.
type window struct {
	oldest, latest string
	inclusive      bool
	limit          int
	cursor         string // the ts in the cursor
}

// isPast reports whether ts and everything before it are too old.
func (w window) isPast(ts string) bool { return w.oldest != "" && compareTS(ts, w.oldest) < 0 }

func (w window) holds(ts string) bool {
	old, late := compareTS(ts, w.oldest), -1
	if w.latest != "" {
		late = compareTS(ts, w.latest)
	}
	if w.inclusive {
		return old >= 0 && late <= 0
	}
	return old > 0 && late < 0
}

// read responds with the messages of choose, which may be one more than the limit.
func (s *Server) read(form url.Values, choose func(*channel, window) ([]*Post, string)) []byte {
	limit, cursor, code := wire.ReadPage(form)
	if s.options.Distributed {
		limit = min(limit, smallPage)
	}
	w := window{oldest: form.Get("oldest"), latest: form.Get("latest"), inclusive: wire.IsTrue(form, "inclusive"), limit: limit, cursor: cursor}
	switch {
	case code != "":
	case form.Get("channel") == "":
		code = "channel_not_found"
	case w.oldest != "" && !isTimestamp(w.oldest):
		code = "invalid_ts_oldest"
	case w.latest != "" && !isTimestamp(w.latest):
		code = "invalid_ts_latest"
	}
	if code != "" {
		return wire.Refusal(code)
	}
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.info.NotMember {
		return wire.Refusal("not_in_channel")
	}
	found, code := choose(c, w)
	if code != "" {
		return wire.Refusal(code)
	}
	next := ""
	if len(found) > limit {
		next, found = wire.CursorAt(found[limit].TS), found[:limit]
	}
	answer := []byte(`{"ok":true,"messages":[`)
	for i, p := range found {
		if i > 0 {
			answer = append(answer, ',')
		}
		answer = c.appendMessage(answer, s, p, wire.IsTrue(form, "include_all_metadata"))
	}
	answer = append(answer, `],"has_more":`+strconv.FormatBool(next != "")...)
	return append(answer, `,"response_metadata":{"next_cursor":"`+next+`"}}`...)
}

// isShown reports whether readers see the message. A deleted message with replies is shown as
// a tombstone.
func (c *channel) isShown(p *Post) bool { return !p.Deleted || c.threads[p.TS] != nil }

// appendMessage appends the message as the channel shows it: with the data of its thread, its
// reactions and its files.
func (c *channel) appendMessage(b []byte, s *Server, p *Post, metadata bool) []byte {
	shown := *p
	if p.Deleted {
		shown = Post{TS: p.TS, Subtype: "tombstone", User: "USLACKBOT", Text: "This message was deleted."}
	}
	t := c.threads[p.TS]
	if t != nil {
		shown.ThreadTS = p.TS
	}
	b = shown.appendJSON(b, metadata)
	if t != nil {
		b = append(b, `,"reply_count":`+strconv.Itoa(t.count)+`,"reply_users_count":`+strconv.Itoa(len(t.users))...)
		b = append(b, `,"latest_reply":"`+t.latest+`","reply_users":`...)
		b = append(b, wire.Encode(t.users)...)
	}
	if p.isReply() {
		if at, there := c.search(p.ThreadTS); there {
			b = wire.AppendMember(b, "parent_user_id", c.posts[at].User)
		}
	}
	if len(shown.Files) > 0 {
		b = append(b, `,"files":`...)
		b = append(b, wire.Encode(s.describeFiles(shown.Files))...)
	}
	b = appendReactions(b, c.reactions[p.TS])
	return append(b, '}')
}
