package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"parley/adapters/replay"
	"parley/ingest/stream"
)

// Screen shows the answers of an agent.
type Screen struct {
	// Out gets the answers. Aside gets thoughts, plans and notices.
	Out, Aside io.Writer
	// Live shows an answer as it comes, and escapes control characters, as for a terminal.
	Live bool
	// JSON prints an Answer instead, a line each.
	JSON bool
	// Colour allows the codes of a terminal in Aside.
	Colour bool

	activity string // whose text is being shown
	shown    strings.Builder
}

// message shows a message of a run.
func (s *Screen) message(m stream.Message) {
	switch {
	case s.JSON || !m.OfMain():
	case m.Type == stream.StreamingChunk:
		s.chunk(m)
	case m.Type == stream.Answer:
		s.whole(m.ActivityID, m.Text)
	case m.Type == stream.RequestInput:
		s.whole(m.ActivityID, m.Ask().Numbered(m.Text))
	case m.Type == stream.Question, m.Type == stream.Complete, m.Type == stream.Idle, m.Text == "":
	case s.Live && m.ActivityID == s.activity && s.shown.Len() > 0: // its text has been shown, and is no answer
		s.endLine()
	default:
		s.endLine()
		s.aside(m.Text)
	}
}

// chunk shows a part of a text as it comes.
func (s *Screen) chunk(m stream.Message) {
	if !s.Live {
		return
	}
	if m.ActivityID != s.activity {
		s.endLine()
		s.activity = m.ActivityID
	}
	s.shown.WriteString(m.Text)
	fmt.Fprint(s.Out, s.plain(m.Text))
}

// whole shows an answer, or only the rest of it if its beginning has been shown.
func (s *Screen) whole(activity, text string) {
	rest, begun := strings.CutPrefix(text, s.shown.String())
	if !begun || activity != s.activity {
		s.endLine()
		rest = text
	}
	s.activity, s.shown = "", strings.Builder{}
	fmt.Fprintln(s.Out, s.plain(rest))
}

// end shows the end of a question. An answer that was only streamed has no line end yet.
func (s *Screen) end(a Answer) {
	if s.JSON {
		raw, _ := json.Marshal(a) // texts and a flag always encode
		fmt.Fprintf(s.Out, "%s\n", raw)
		return
	}
	s.endLine()
}

// endLine ends a text that is being shown.
func (s *Screen) endLine() {
	if s.shown.Len() > 0 {
		fmt.Fprintln(s.Out)
	}
	s.activity, s.shown = "", strings.Builder{}
}

// aside shows words that are no answer.
func (s *Screen) aside(text string) {
	if text = strings.TrimSpace(s.plain(text)); s.Colour {
		text = "\x1b[2m" + text + "\x1b[0m"
	}
	fmt.Fprintln(s.Aside, text)
}

// plain escapes what could change the terminal, but for line ends. An output that is no terminal gets the text as it is.
func (s *Screen) plain(text string) string {
	if !s.Live {
		return text
	}
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i, line := range lines {
		lines[i] = replay.Visible(line)
	}
	return strings.Join(lines, "\n")
}
