package chat

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

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
	// Colour allows the codes of a terminal in Aside, and Styled in Out, where they show Markdown.
	Colour, Styled bool
	// Waits shows in Out that the agent works before its first words.
	Waits bool

	waiting  bool // such a line is shown
	style    style
	activity string // whose text is being shown
	shown    strings.Builder
}

// message shows a message of a run.
func (s *Screen) message(m stream.Message) {
	if m.OfMain() && m.Type != stream.Question {
		s.arrived()
	}
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

// wait shows for how long the agent has been working without a word.
func (s *Screen) wait(passed time.Duration) {
	if s.Waits {
		s.waiting = true
		fmt.Fprintf(s.Out, "\rthe agent is thinking… %d s\x1b[K", int(passed.Seconds()))
	}
}

// arrived removes the line of wait.
func (s *Screen) arrived() {
	if s.waiting {
		fmt.Fprint(s.Out, "\r\x1b[K")
	}
	s.waiting = false
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
	fmt.Fprint(s.Out, s.styled(m.Text))
}

// whole shows an answer, or only the rest of it if its beginning has been shown.
func (s *Screen) whole(activity, text string) {
	rest, begun := strings.CutPrefix(text, s.shown.String())
	if !begun || activity != s.activity {
		s.endLine()
		rest = text
	}
	s.activity, s.shown = "", strings.Builder{}
	fmt.Fprintln(s.Out, s.styled(rest)+s.style.end())
}

// styled returns the next part of an answer for Out.
func (s *Screen) styled(text string) string {
	if text = s.plain(text); s.Styled {
		text = s.style.next(text)
	}
	return text
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
		fmt.Fprintln(s.Out, s.style.end())
	}
	s.activity, s.shown = "", strings.Builder{}
}

// aside shows words that are no answer.
func (s *Screen) aside(text string) {
	if text = strings.TrimSpace(s.plain(text)); s.Colour {
		text = faint + text + reset
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
