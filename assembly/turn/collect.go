package turn

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// collector gathers an agent's messages, within bounds.
type collector struct {
	limit int64 // of the tokens, of the answers, and of the other messages, in bytes each
	now   func() time.Time

	grow   func(text string)      // gets the tokens of the answer; nil for none
	note   func(m stream.Message) // gets the whole messages
	faulty func(err error)        // gets the faults of a card
	files  []stream.File          // of the answer
	events *recorder
	quiet  string           // the quiet reply; empty for none
	held   []stream.Message // tokens that may become the quiet reply
	speaks bool             // the tokens are no quiet reply

	text     string          // the answer
	own      json.RawMessage // the details of the answer; nil for none
	card     *card.Card      // of the answer; nil for none
	answered bool
	asks     *stream.Message // the agent's question, which ends the run; nil for none
	first    time.Time       // the time of the first message
	refused  error           // a message was too long or malformed

	tells bool             // told is filled
	told  []stream.Message // the whole messages, with their times

	streamed stream.Streamed
	// The bytes of tokens, of answers, and of other whole messages.
	chunkBytes, answerBytes, messageBytes int64
}

// emit takes one message. An answer replaces the chunks before it.
func (c *collector) emit(m stream.Message) error {
	if c.refused != nil {
		return c.refused
	}
	if c.first.IsZero() {
		c.first = c.now()
	}
	chunk, main := m.Type == stream.StreamingChunk, m.OfMain()
	bytes := &c.messageBytes
	switch m.Type {
	case stream.StreamingChunk:
		bytes = &c.chunkBytes
	case stream.Answer, stream.RequestInput, stream.Complete:
		bytes = &c.answerBytes
	}
	if *bytes += int64(len(m.Text) + len(m.Details)); *bytes > c.limit {
		c.refused = permanent{fmt.Errorf("%w: more than %d bytes", errTooLong, c.limit)}
		return c.refused
	}
	m.Details = event.Shallow(m.Details)
	c.checkCard(&m)
	c.streamed.Add(m)
	switch {
	case chunk && main:
		c.token(m)
		return nil
	case main:
		if err := c.answer(m); err != nil {
			return err
		}
		if m.Takes() {
			c.held = slices.DeleteFunc(c.held, func(t stream.Message) bool { return t.ActivityID == m.ActivityID })
		}
	}
	c.events.add(m)
	if chunk {
		return nil
	}
	c.note(m)
	if c.tells {
		m.Time = c.now()
		c.told = append(c.told, m.WithoutResult())
	}
	return nil
}

// checkCard compiles the card of a message. A faulty one does not cost the answer: readers of the run get
// the message without it, and a warning that names its faults.
func (c *collector) checkCard(m *stream.Message) {
	var err error
	if m.Details, err = card.Compile(m.Details); err != nil {
		c.faulty(err)
		c.events.add(stream.Message{Type: stream.Warning, Text: "The card is not shown: " + err.Error(), Workstream: m.Workstream})
	}
}

// answer takes the run's text from an ANSWER or a REQUEST_INPUT. In a run without an ANSWER, it takes the
// text of a COMPLETE, or the rest of the streamed text if a COMPLETE or IDLE has none.
func (c *collector) answer(m stream.Message) error {
	files, err := m.Files()
	if err != nil {
		c.refused = permanent{err}
		return c.refused
	}
	c.files = append(c.files, files...)
	switch {
	case m.Type == stream.Answer:
		c.text, c.own, c.card, c.answered, c.asks = event.Text(m.Text), m.Details, card.Of(m.Details), true, nil
	case m.Type == stream.RequestInput:
		c.text, c.own, c.card, c.answered, c.asks = joined(c.text, event.Text(m.Text)), nil, cmp.Or(card.Of(m.Details), c.card), true, &m
	case (m.Type == stream.Complete || m.Type == stream.Idle) && !c.answered:
		c.end(m)
	}
	return nil
}

// end takes the answer of a run that ends without an ANSWER. Readers of the run expect one.
func (c *collector) end(m stream.Message) {
	text, activity := c.streamed.Left()
	if m.Type == stream.Complete {
		text, c.own, c.card = cmp.Or(m.Text, text), m.Details, card.Of(m.Details)
	}
	c.answered = c.card != nil
	if text != "" {
		c.text, c.answered = event.Text(text), true
		c.events.add(stream.Message{Type: stream.Answer, Text: c.text, ActivityID: activity})
	}
}

// joined returns a question below the answer before it, if there is one.
func joined(answer, question string) string {
	if answer == "" || question == "" {
		return cmp.Or(answer, question)
	}
	return answer + "\n\n" + question
}

// LongAnswer is the sentence for the people in the thread after an answer without end.
const LongAnswer = "Sorry, my answer became too long, so I stopped."

// LateAnswer is the sentence for the people in the thread after an answer that did not come in time.
const LateAnswer = "Sorry, I couldn't answer this in time. Please ask again later."

var errTooLong = errors.New("the agent said too much")

// maxOwn bounds the keys of a reply's metadata that are the agent's own, in bytes.
const maxOwn = 64 << 10

// reserved are the keys of a reply's metadata that this package writes, and the key of the
// answer's files.
var reserved = []string{"run_id", "stage", "latency_ms", "message_id", "files"}

// ownKeys returns the keys of an answer's details that become keys of the reply's metadata,
// in their order. It leaves out the keys with a meaning of ours, and each key that would make them too large together. Details that are no object, or that have a key twice, have none.
func ownKeys(details json.RawMessage) (own []event.Extra) {
	if len(details) == 0 {
		return nil
	}
	members, err := event.ReadObject([]byte(event.Text(string(details))))
	if err != nil {
		return nil
	}
	room := maxOwn
	for _, m := range members {
		size := len(m.Key) + len(m.Value)
		if slices.Contains(reserved, m.Key) || event.IsKnown(m.Key) || size > room {
			continue
		}
		room -= size
		own = append(own, m)
	}
	return own
}
