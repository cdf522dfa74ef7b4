package slacktest

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"parley/adapters/slack/slacktest/internal/content"
	"parley/adapters/slack/slacktest/internal/wire"
)

// streamAge is the time after which Slack ends a stream by itself. Slack documents no
// lifetime; users measured this one.
// https://github.com/vercel/chat/issues/607
const streamAge = 5 * time.Minute

// StreamState is the streaming_state of a message that began as a stream.
type StreamState string

// The states of a stream. The state of any other message is empty.
const (
	Streaming StreamState = "in_progress"
	Streamed  StreamState = "completed"
)

// stream is an open stream.
type stream struct {
	began   time.Time
	length  int    // characters so far
	mode    string // the argument of its text so far; empty without text
	stopped bool   // a reader pressed the stop button
}

// OpenStreams returns the messages that are still streaming, by channel and ts.
func (s *Server) OpenStreams() (open []Post) {
	for _, c := range s.allChannels() {
		c.mu.Lock()
		first := len(open)
		for ts := range c.streams {
			if s.closeStream(c, ts); c.streams[ts] != nil {
				open = append(open, *c.find(ts))
			}
		}
		c.mu.Unlock()
		slices.SortFunc(open[first:], func(a, b Post) int { return compareTS(a.TS, b.TS) })
	}
	s.sendEvents()
	return open
}

// PressStop does the same as a reader's stop button: appends fail, and the app must still
// stop the stream.
func (s *Server) PressStop(channel, ts string) {
	c := s.channel(channel)
	c.mu.Lock()
	defer c.mu.Unlock()
	if open := c.streams[ts]; open != nil {
		open.stopped = true
	}
}

// startStream is chat.startStream.
// https://docs.slack.dev/reference/methods/chat.startStream
func (s *Server) startStream(form url.Values) []byte {
	post := s.ours(form)
	kind := s.kindOf(post.Channel)
	added, code := readAddition(form)
	switch {
	case s.options.NoStreams != "":
		code = s.options.NoStreams
	case post.Channel == "":
		code = "channel_not_found"
	case post.ThreadTS == "":
		return wire.Missing("thread_ts")
	case kind != DirectMessage && form.Get("recipient_team_id") == "":
		code = "missing_recipient_team_id"
	case kind != DirectMessage && form.Get("recipient_user_id") == "":
		code = "missing_recipient_user_id"
	}
	if code != "" {
		return wire.Refusal(code)
	}
	post.Stream, post.Markdown = Streaming, added.text
	post, code = s.publish(post, &stream{began: s.options.Now(), length: utf8.RuneCountInString(added.text), mode: added.mode})
	if code != "" {
		return wire.Refusal(code)
	}
	return wire.Encode(map[string]any{"ok": true, "channel": post.Channel, "ts": post.TS})
}

// appendStream is chat.appendStream.
// https://docs.slack.dev/reference/methods/chat.appendStream
func (s *Server) appendStream(form url.Values) []byte {
	added, code := readAddition(form)
	if code == "" && added.mode == "" {
		code = "markdown_text_or_chunks_required"
	}
	post, code := s.grow(form, added, code, func(_ *channel, open *stream, p *Post) string {
		if open.stopped {
			return "stopped_by_user"
		}
		p.Markdown += added.text
		return ""
	})
	if code != "" {
		return wire.Refusal(code)
	}
	return wire.Encode(map[string]any{"ok": true, "channel": post.Channel, "ts": post.TS})
}

// stopStream is chat.stopStream. Its blocks are shown below the stream's text.
// https://docs.slack.dev/reference/methods/chat.stopStream
func (s *Server) stopStream(form url.Values) []byte {
	added, code := readAddition(form)
	var what content.Content
	if code == "" {
		what, code = content.Read(url.Values{"blocks": form["blocks"], "metadata": form["metadata"]}, 0, s.options.refuses)
	}
	post, code := s.grow(form, added, code, func(c *channel, open *stream, p *Post) string {
		if open.length == 0 && added.text == "" && what.Empty() {
			return "no_text"
		}
		before := *p
		p.Markdown += added.text
		if what.Markdown != nil {
			p.Markdown = strings.TrimPrefix(p.Markdown+"\n\n"+*what.Markdown, "\n\n")
		}
		p.Blocks, p.Stream = what.Blocks, Streamed
		writeMetadata(what, p)
		delete(c.streams, p.TS)
		s.changed(c, &before, p)
		return ""
	})
	if code != "" {
		return wire.Refusal(code)
	}
	return postResponse(post)
}

// grow calls do to change the stream of the call, unless there is a code already or the
// stream refuses the change. An addition that would make the stream too long closes the
// stream and is dropped.
func (s *Server) grow(form url.Values, added addition, code string, do func(*channel, *stream, *Post) string) (post Post, _ string) {
	if code = cmp.Or(s.options.NoStreams, code); code != "" {
		return post, code
	}
	ts := form.Get("ts")
	c := s.channel(form.Get("channel"))
	c.mu.Lock()
	s.closeStream(c, ts)
	p, open := c.find(ts), c.streams[ts]
	if code = s.refuseGrowth(p, open, added.mode); code == "" {
		length := utf8.RuneCountInString(added.text)
		if open.length+length > s.options.StreamLimit {
			s.endStream(c, p)
			code = "message_not_in_streaming_state"
		} else if code = do(c, open, p); code == "" {
			open.length += length
			open.mode = cmp.Or(open.mode, added.mode)
			post = *p
		}
	}
	c.mu.Unlock()
	s.sendEvents()
	if code == "" {
		s.reportChange(post)
	}
	return post, code
}

// refuseGrowth returns the code with which the stream refuses an addition, or an empty
// string.
func (s *Server) refuseGrowth(p *Post, open *stream, mode string) string {
	switch {
	case p == nil:
		return "message_not_found"
	case !s.isOurs(p):
		return "message_not_owned_by_app"
	case open == nil:
		return "message_not_in_streaming_state"
	case mode != "" && open.mode != "" && mode != open.mode:
		return "streaming_mode_mismatch"
	}
	return ""
}

// closeStream ends the stream at ts if it is too old. The channel is locked.
func (s *Server) closeStream(c *channel, ts string) {
	open := c.streams[ts]
	if open != nil && s.options.Now().Sub(open.began) >= s.options.StreamAge {
		s.endStream(c, c.find(ts))
	}
}

func (s *Server) endStream(c *channel, p *Post) {
	before := *p
	delete(c.streams, p.TS)
	p.Stream = Streamed
	s.changed(c, &before, p)
}

// addition is the text that a call appends to a stream.
type addition struct {
	text string
	mode string // the argument of the text; empty without text
}

// readAddition reads the text from markdown_text or from chunks. It accepts and ignores the
// other kinds of chunks (tasks, plans, blocks).
func readAddition(form url.Values) (a addition, code string) {
	text, raw := form.Get("markdown_text"), form.Get("chunks")
	switch {
	case text != "" && raw != "":
		return a, "cannot_provide_both_markdown_text_and_chunks"
	case text != "":
		a = addition{text, "markdown_text"}
	case raw != "":
		a.mode = "chunks"
		var chunks []struct{ Type, Text string }
		if json.Unmarshal([]byte(raw), &chunks) != nil {
			return a, "invalid_chunks"
		}
		for _, chunk := range chunks {
			switch chunk.Type {
			case "markdown_text":
				a.text += chunk.Text
			case "task_update", "plan_update", "blocks":
			default:
				return a, "invalid_chunks"
			}
		}
	}
	if utf8.RuneCountInString(a.text) > content.MaxMarkdown {
		return a, "msg_too_long"
	}
	return a, ""
}
