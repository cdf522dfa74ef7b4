package slacktest

import (
	"net/url"
	"time"
)

// update is chat.update. Blocks that are not sent stay only where no text is
// sent either; metadata that is not sent stays.
// https://docs.slack.dev/reference/methods/chat.update
func (s *Server) update(form url.Values) []byte {
	what, code := s.readContent(form, maxUpdate)
	if code == "" && what.empty() && what.metadata == nil {
		code = "no_text"
	}
	if code != "" {
		return refusal(code)
	}
	c := s.channel(form.Get("channel"))
	post, code := s.change(c, form.Get("ts"), "cant_update_message", "streaming_state_conflict", func(p *Post) {
		p.Edits++
		if what.empty() {
			what.writeMetadata(p)
			return
		}
		what.write(p)
		p.EditedTS = ""
		if what.blocks == nil { // readers are not told of changed blocks
			p.EditedTS = s.editedTS()
		}
	})
	if code != "" {
		return refusal(code)
	}
	return answerPost(post)
}

// remove is chat.delete.
// https://docs.slack.dev/reference/methods/chat.delete
func (s *Server) remove(form url.Values) []byte {
	id, ts := form.Get("channel"), form.Get("ts")
	c := s.channel(id)
	_, code := s.change(c, ts, "cant_delete_message", "cant_delete_message", func(p *Post) { c.erase(p) })
	if code != "" {
		return refusal(code)
	}
	return encode(map[string]any{"ok": true, "channel": id, "ts": ts})
}

// change applies do to a message of ours and tells who wants to know. It refuses
// what is not there, what others wrote, and what is still streaming.
func (s *Server) change(c *channel, ts, foreign, streaming string, do func(*Post)) (post Post, code string) {
	c.mu.Lock()
	s.closeStream(c, ts)
	p := c.find(ts)
	switch {
	case p == nil:
		code = "message_not_found"
	case !s.isOurs(p):
		code = foreign
	case c.streams[ts] != nil:
		code = streaming
	}
	if code != "" {
		c.mu.Unlock()
		return Post{}, code
	}
	before := *p
	do(p)
	post = *p
	s.changed(c, &before, &post)
	c.mu.Unlock()
	s.tellChange(post)
	return post, ""
}

// changed queues the event of a change of ours.
func (s *Server) changed(c *channel, before, after *Post) {
	if s.options.Echo {
		s.queueEvent(c.changeEvent(s, before, after))
	}
}

// tellChange tells of a change that has been made.
func (s *Server) tellChange(post Post) {
	s.tellEvents()
	if s.options.OnChange != nil {
		s.options.OnChange(post)
	}
}

// erase takes a message away. Its place is kept, since a root with replies
// leaves a tombstone.
func (c *channel) erase(p *Post) {
	p.Deleted = true
	delete(c.reactions, p.TS)
	delete(c.streams, p.TS)
	if p.isReply() {
		c.unanswer(p)
	}
}

// Edit changes a message as its author does, and returns the event by which Slack
// tells of it (the inner one's JSON); nil where there is no such message.
func (s *Server) Edit(id, ts, text string) (event []byte) {
	return s.theirs(id, ts, func(_ *channel, p *Post) {
		p.Text, p.Markdown, p.Blocks = text, "", nil
		p.Edits++
		p.EditedTS = s.editedTS()
	})
}

// Delete takes a message away as its author or an administrator does, ours and
// open streams too, and returns the event as Edit does.
func (s *Server) Delete(id, ts string) (event []byte) {
	return s.theirs(id, ts, (*channel).erase)
}

func (s *Server) theirs(id, ts string, do func(*channel, *Post)) []byte {
	c := s.channel(id)
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.find(ts)
	if p == nil {
		return nil
	}
	before := *p
	do(c, p)
	return c.changeEvent(s, &before, p)
}

// editedTS is the time of an edit, which Slack gives in whole seconds.
// https://docs.slack.dev/reference/events/message/message_changed
func (s *Server) editedTS() string { return Timestamp(s.options.Now().Truncate(time.Second)) }
