package stream

import "strings"

// Streamed is the text that the main workstream of a run has streamed, by activity. Chunks without an
// activity belong to the nameless one. The zero value is ready to use.
type Streamed struct {
	order []*activity // in the order of their begin, also those that were taken
	open  map[string]*activity
}

// activity is the streamed text of an activity.
type activity struct {
	id    string
	text  strings.Builder
	taken bool
}

// Add takes a message of the run. A whole message takes the text of its activity: an ANSWER replaces
// it, and any other type, such as a THOUGHT, shows that it was no part of the answer. Messages that
// end a run or ask people take none.
func (s *Streamed) Add(m Message) {
	if !m.OfMain() {
		return
	}
	of, begun := s.open[m.ActivityID]
	switch {
	case m.Type != StreamingChunk:
		if begun && m.Takes() {
			of.taken, of.text = true, strings.Builder{}
			delete(s.open, m.ActivityID)
		}
		return
	case !begun:
		of = &activity{id: m.ActivityID}
		if s.open == nil {
			s.open = map[string]*activity{}
		}
		s.open[m.ActivityID], s.order = of, append(s.order, of)
	}
	of.text.WriteString(m.Text)
}

// Takes reports whether a message takes the text that its activity has streamed. Without an activity,
// only a message of the agent's own work does.
func (m Message) Takes() bool {
	switch m.Type {
	case StreamingChunk, Complete, Idle, Terminated, RequestInput, Question:
		return false
	case Answer, Thought, Plan, Update:
		return true
	}
	return m.ActivityID != ""
}

// Left returns the text that no whole message has taken: a paragraph for each activity, in the order
// of their begin. The activity is the one that the text belongs to; empty if there are several.
func (s *Streamed) Left() (text, activity string) {
	var texts []string
	for _, of := range s.order {
		if !of.taken && of.text.Len() > 0 {
			texts, activity = append(texts, of.text.String()), of.id
		}
	}
	if len(texts) > 1 {
		activity = ""
	}
	return strings.Join(texts, "\n\n"), activity
}

// Cut returns a chunk as chunks of at most most characters each. The last one is final if the chunk is.
func (m Message) Cut(most int) (chunks []Message) {
	for {
		next := m
		if next.Text = beginning(m.Text, most); len(next.Text) == len(m.Text) {
			return append(chunks, m)
		}
		next.Final = false
		chunks = append(chunks, next)
		m.Text = m.Text[len(next.Text):]
	}
}

// beginning returns at most most characters of a text.
func beginning(text string, most int) string {
	for i := range text {
		if most == 0 {
			return text[:i]
		}
		most--
	}
	return text
}
