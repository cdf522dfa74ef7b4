package remote

import (
	"strings"
	"unicode/utf8"

	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/stream"
)

// Speech keeps the messages of a run in the agent's own voice, for a protocol that has whole messages of its
// own. It reads the texts that people see: the streamed texts, and those of an ANSWER, a REQUEST_INPUT or a
// COMPLETE. See voice.
type Speech struct {
	speakers assembly.Speakers
	streamed map[string]*voice // of each activity that no whole message has taken
	order    []string          // the activities
}

// NewSpeech returns the speech of an agent among speakers.
func NewSpeech(speakers assembly.Speakers) *Speech {
	return &Speech{speakers: speakers, streamed: map[string]*voice{}}
}

// Say returns the messages that the run gets instead of a message.
func (s *Speech) Say(m stream.Message) (said []stream.Message) {
	if !m.OfMain() {
		return []stream.Message{m}
	}
	if m.Type == stream.StreamingChunk {
		return s.token(m)
	}
	if m.Takes() {
		delete(s.streamed, m.ActivityID)
	}
	switch {
	case (m.Type == stream.Answer || m.Type == stream.RequestInput || m.Type == stream.Complete) && m.Text != "":
		v := &voice{speakers: s.speakers}
		text := v.add(m.Text)
		if m.Text = text + v.end(); v.over {
			m.Text, said = strings.TrimRight(text, " \t\r\n"), append(said, v.warning())
		}
	case m.Type == stream.Complete, m.Type == stream.Idle:
		said = s.end()
	}
	return append(said, m)
}

func (s *Speech) token(m stream.Message) []stream.Message {
	v := s.streamed[m.ActivityID]
	if v == nil {
		v = &voice{speakers: s.speakers}
		s.streamed[m.ActivityID], s.order = v, append(s.order, m.ActivityID)
	}
	if v.rest.Len() > maxRest*utf8.UTFMax {
		return nil // nobody will see more of it
	}
	if m.Text = v.add(m.Text); m.Text == "" && !m.Final && len(m.Details) == 0 {
		return nil
	}
	return []stream.Message{m}
}

// end returns what is left of the streamed texts.
func (s *Speech) end() (said []stream.Message) {
	for _, activity := range s.order {
		switch v := s.streamed[activity]; {
		case v == nil:
		case v.over:
			said = append(said, v.warning())
		default:
			if rest := v.end(); rest != "" {
				said = append(said, stream.Message{Type: stream.StreamingChunk, Text: rest, ActivityID: activity})
			}
		}
		delete(s.streamed, activity)
	}
	return said
}

// warning tells the readers of a run what follows the end of its answer.
func (v *voice) warning() stream.Message {
	return stream.Message{Type: stream.Warning, Text: "The model went on with the conversation, and this was left out: " + event.Beginning(v.rest.String(), maxRest)}
}
