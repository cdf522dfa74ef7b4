package turn

import (
	"errors"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/stream"
)

// ErrEmpty is the error of an agent whose answer has no text.
var ErrEmpty = errors.New("the answer is empty")

// errQuiet ends a run in which the agent chose to say nothing.
var errQuiet = errors.New("the agent had nothing to say")

// isQuiet reports whether the agent chose to say nothing: its answer is the quiet reply, or it is empty and no
// message of the turn addressed the bot. An empty answer to a direct question is a failure. err is the
// error of the agent.
func (a *attempt) isQuiet(err error) bool {
	text := strings.TrimSpace(a.said.text)
	switch {
	case a.run.IsScheduled() && text == DefaultQuietReply && a.said.asks == nil && len(a.said.files) == 0:
		return err == nil
	case a.said.asks != nil || len(a.said.files) > 0, text == "" && a.card() != nil:
		return false
	case text != "" || a.addressed():
		return err == nil && text != "" && text == a.profile.QuietReply
	}
	return err == nil || errors.Is(err, ErrEmpty)
}

// isEmpty reports whether the agent gave nothing that people or, over the API, programs could read. The
// echo of a message without words and files is an answer.
func (a *attempt) isEmpty() bool {
	said, last := &a.said, &a.run.Messages[len(a.run.Messages)-1]
	switch {
	case !said.answered:
		return true
	case strings.TrimSpace(said.text) != "", said.asks != nil, len(said.files) > 0, a.card() != nil, len(said.own) > 0 && a.settings.API:
		return false
	}
	return strings.TrimSpace(last.Content) != "" || last.FileCount > 0
}

// addressed reports whether a message of the turn addressed the bot.
func (a *attempt) addressed() bool {
	return slices.ContainsFunc(a.run.Messages, func(m messages.Message) bool {
		return m.Reason != event.ReasonOpen && m.Reason != event.ReasonFollowed && m.Reason != event.ReasonSchedule
	})
}

// token shows a token of the answer as soon as the tokens cannot be the beginning of the quiet reply any more,
// so that neither the live preview nor a follower of the run ever sees that.
func (c *collector) token(m stream.Message) {
	if c.speaks {
		c.show(m.Text)
		c.events.add(m)
		return
	}
	c.held = append(c.held, m)
	var text strings.Builder
	for _, m := range c.held {
		text.WriteString(m.Text)
	}
	if strings.HasPrefix(c.quiet, strings.TrimSpace(text.String())) {
		return
	}
	c.speaks = true
	c.show(text.String())
	for _, m := range c.held {
		c.events.add(m)
	}
	c.held = nil
}

// show lets people see more of the answer, if they see it grow.
func (c *collector) show(text string) {
	if c.grow != nil {
		c.grow(text)
	}
}
