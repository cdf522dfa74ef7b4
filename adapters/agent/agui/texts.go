package agui

import "strings"

// texts are the assistant's own text messages, which are the answer: each is a paragraph, in the
// order of their begin. Only the first open one is written as it grows; the text of the others waits
// until those before it have ended.
type texts struct {
	open   map[string]*textMessage
	queue  []*textMessage // in the order of their begin, without those that are written whole
	shown  string         // the id of the message that was written last
	queued int            // bytes of text that wait
}

// textMessage is a text message that has begun.
type textMessage struct {
	id    string
	other bool            // it is no answer: of another role, or of a subagent
	text  strings.Builder // that is not written
	ended bool
}

// text takes an event of a text message.
func (r *run) text(e streamEvent) error {
	if e.Type == "TEXT_MESSAGE_START" {
		m := &textMessage{id: e.MessageID, other: e.SubagentRunID != "" || e.Role != "" && e.Role != "assistant"}
		if r.texts.open[m.id] = m; !m.other {
			r.texts.queue = append(r.texts.queue, m)
		}
		return nil
	}
	m := r.texts.open[e.MessageID]
	switch {
	case e.Type == "TEXT_MESSAGE_END":
		m.ended = true
		delete(r.texts.open, e.MessageID)
		delete(r.halves, e.MessageID)
	default:
		delta, err := r.delta(e)
		if err != nil || m.other {
			return err
		}
		m.text.WriteString(delta)
		r.texts.queued += len(delta)
	}
	if r.texts.queued > r.limit {
		return r.endTexts() // the whole answer is too long
	}
	return r.writeTexts()
}

// endTexts ends the open messages.
func (r *run) endTexts() error {
	for _, m := range r.texts.queue {
		m.ended = true
	}
	return r.writeTexts()
}

// writeTexts writes the text of the first open message, and of those that have ended before it.
func (r *run) writeTexts() error {
	t := &r.texts
	for len(t.queue) > 0 {
		m := t.queue[0]
		text := m.text.String()
		if m.text.Reset(); text != "" {
			t.queued -= len(text)
			if t.shown != "" && t.shown != m.id {
				if err := r.answer.Part(); err != nil {
					return err
				}
			}
			t.shown = m.id
			if err := r.answer.Text(text); err != nil {
				return err
			}
		}
		if !m.ended {
			return nil
		}
		t.queue = t.queue[1:]
	}
	return nil
}
