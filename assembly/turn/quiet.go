package turn

import (
	"errors"
	"slices"
	"strings"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
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
	case a.said.asks != nil || len(a.said.files) > 0:
		return false
	case text != "" || a.addressed():
		return err == nil && text != "" && text == a.profile.QuietReply
	}
	return err == nil || errors.Is(err, ErrEmpty)
}

// addressed reports whether a message of the turn addressed the bot.
func (a *attempt) addressed() bool {
	return slices.ContainsFunc(a.run.Messages, func(m messages.Message) bool {
		return m.Reason != event.ReasonOpen && m.Reason != event.ReasonFollowed
	})
}

// unlessQuiet returns a function that passes the tokens of an answer on as soon as they cannot be the
// beginning of the quiet reply any more, so that the live preview never shows it.
func (a *attempt) unlessQuiet(grow func(text string)) func(text string) {
	held, isOpen := "", a.profile.QuietReply == ""
	return func(text string) {
		if !isOpen {
			held += text
			if strings.HasPrefix(a.profile.QuietReply, strings.TrimSpace(held)) {
				return
			}
			text, isOpen = held, true
		}
		grow(text)
	}
}
