package slacktest

import (
	"net/url"
	"time"

	"parley/adapters/slack/slacktest/internal/content"
	"parley/adapters/slack/slacktest/internal/wire"
)

// update is chat.update. Absent blocks stay only if the text is absent too. Absent metadata
// stays.
// https://docs.slack.dev/reference/methods/chat.update
func (s *Server) update(form url.Values) []byte {
	what, code := content.Read(form, content.MaxUpdate, s.options.refuses)
	if code == "" && what.Empty() && what.Metadata == nil {
		code = "no_text"
	}
	if code != "" {
		return wire.Refusal(code)
	}
	c := s.channel(form.Get("channel"))
	if c.isArchived() {
		return wire.Refusal("is_inactive")
	}
	post, code := s.change(c, form.Get("ts"), "cant_update_message", "streaming_state_conflict", func(p *Post) {
		p.Edits++
		if what.Empty() {
			writeMetadata(what, p)
			return
		}
		writeContent(what, p)
		p.EditedTS = ""
		if what.Blocks == nil { // Slack does not mark a message with changed blocks as edited
			p.EditedTS = s.editedTS()
		}
	})
	if code != "" {
		return wire.Refusal(code)
	}
	return postResponse(post)
}

// remove is chat.delete.
// https://docs.slack.dev/reference/methods/chat.delete
func (s *Server) remove(form url.Values) []byte {
	id, ts := form.Get("channel"), form.Get("ts")
	c := s.channel(id)
	_, code := s.change(c, ts, "cant_delete_message", "cant_delete_message", func(p *Post) { c.erase(p) })
	if code != "" {
		return wire.Refusal(code)
	}
	return wire.Encode(map[string]any{"ok": true, "channel": id, "ts": ts})
}

// change applies do to a message of ours, and reports the change. It refuses a missing
// message, a message of another author, and an open stream.
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
	s.reportChange(post)
	return post, ""
}

// changed queues the event of a change of ours.
func (s *Server) changed(c *channel, before, after *Post) {
	if s.options.Echo {
		s.queueEvent(c.changeEvent(s, before, after))
	}
}

// reportChange reports a completed change to OnEvent and OnChange.
func (s *Server) reportChange(post Post) {
	s.sendEvents()
	if s.options.OnChange != nil {
		s.options.OnChange(post)
	}
}

// erase deletes a message. The post stays in the list, because a root with replies leaves a
// tombstone.
func (c *channel) erase(p *Post) {
	p.Deleted = true
	delete(c.reactions, p.TS)
	delete(c.streams, p.TS)
	if p.isReply() {
		c.unanswer(p)
	}
}

// Edit changes a message as its author does. It returns the JSON of the inner event, or nil
// if there is no such message.
func (s *Server) Edit(id, ts, text string) (event []byte) {
	return s.changeAny(id, ts, func(_ *channel, p *Post) {
		p.Text, p.Markdown, p.Blocks = text, "", nil
		p.Edits++
		p.EditedTS = s.editedTS()
	})
}

// Delete deletes a message as its author or an administrator does, even ours and an open
// stream. It returns the event as Edit does.
func (s *Server) Delete(id, ts string) (event []byte) {
	return s.changeAny(id, ts, (*channel).erase)
}

func (s *Server) changeAny(id, ts string, do func(*channel, *Post)) []byte {
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

// editedTS returns the time of an edit, which Slack gives in whole seconds.
// https://docs.slack.dev/reference/events/message/message_changed
func (s *Server) editedTS() string { return Timestamp(s.options.Now().Truncate(time.Second)) }
