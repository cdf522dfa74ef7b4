package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
)

const (
	// interval and batch pace the chunks. For about interval after a chunk, the events that arrive stay unread. Then they are
	// read in one go, and their text is the next chunk; several ones if it has batch characters or more. See rest.
	interval = 16 * time.Millisecond
	batch    = 200
	// grace bounds the wait for the stream's end after the server's end mark. After
	// the stream's end, the next run can use the connection.
	grace = 250 * time.Millisecond
)

// Answer emits the messages of one run: the growing answer first in chunks, and then as a
// whole. It is used by one goroutine.
type Answer struct {
	activity string
	limit    int64 // bytes of text
	emit     func(stream.Message) error

	text    strings.Builder
	part    int             // where the current part of the text begins
	gap     string          // before the next words
	split   *splitter       // of the current part; nil if the part has ended
	keep    bool            // thinking stays a part of the text
	cut     bool            // marks were left out of the text
	voice   *voice          // nil for an agent whose messages are read by a Speech
	client  *Client         // remembers what its model does; nil for an agent whose messages are read by a Speech
	again   bool            // the text comes once more, without its chunks and its thoughts
	turns   int             // number of texts that were thoughts
	gone    int             // bytes of chunks of these texts
	thought strings.Builder // reasoning that no THOUGHT has emitted yet
	thinks  int             // number of THOUGHTs
	sent    int             // bytes of text that chunks have emitted
	chars   int             // characters of text that no chunk has emitted
	last    time.Time
	measure func(assembly.Usage) // nil for nobody
	shown   shown
	done    bool // the server has marked the end of its answer
}

// NewAnswer returns the answer of a run. Its text has at most limit bytes.
func NewAnswer(run string, limit int64, emit func(stream.Message) error) *Answer {
	return &Answer{activity: run, limit: limit, emit: emit}
}

// Measured lets measure take the usage of the request, if it is not nil.
func (a *Answer) Measured(measure func(assembly.Usage)) *Answer {
	a.measure = measure
	return a
}

// Read keeps the text in the agent's own voice among the speakers: see voice. It also makes the thinking
// at the beginning of the text THOUGHTs, if the settings say so. A text that
// only a closing tag ends was shown in chunks before the tag came. The client remembers that, and later
// answers have no chunks until a tag or the end has shown whether their text is a thought.
func (a *Answer) Read(settings Reading, c *Client, speakers assembly.Speakers) *Answer {
	a.voice = &voice{speakers: speakers}
	a.client, a.keep = c, settings.Thinking == KeepThinking
	a.split = newSplitter(a.keep)
	return a
}

// Text appends to the answer.
func (a *Answer) Text(text string) error {
	if text == "" {
		return nil
	}
	if err := a.EndThought(); err != nil {
		return err
	}
	text = event.Text(text)
	if a.voice != nil {
		text = a.shown.scan.add(text, a.picture)
		if err := a.Bound(a.text.Len() + a.shown.scan.held()); err != nil || text == "" {
			return err
		}
	}
	return a.plain(text)
}

// plain appends a text without pictures.
func (a *Answer) plain(text string) error {
	if a.split == nil {
		return a.speak(text)
	}
	if err := a.Bound(a.text.Len() + a.split.held() + len(text)); err != nil {
		return err
	}
	return a.take(a.split.add(text))
}

// speak appends words of the model.
func (a *Answer) speak(text string) error {
	if a.voice == nil {
		return a.write(text)
	}
	text = a.voice.add(text)
	if err := a.Bound(a.gone + a.text.Len() + a.voice.rest.Len()); err != nil {
		return err
	}
	return a.write(text)
}

// Add appends a part of a content.
func (a *Answer) Add(p Part) error {
	switch {
	case p.Picture != "":
		return a.Picture(p.Picture)
	case p.Thought:
		return a.Thought(p.Text)
	}
	return a.Text(p.Text)
}

// Part begins a further part of the text: a paragraph of its own, which may begin with thinking.
func (a *Answer) Part() error {
	if err := a.End(); err != nil {
		return err
	}
	if a.client != nil {
		a.split = newSplitter(a.keep)
	}
	if a.voice != nil && !a.voice.over {
		a.voice = &voice{speakers: a.voice.speakers}
	}
	a.begin()
	return nil
}

// Replace begins the text again, for a server that repeats its whole answer behind the parts. The chunks and the
// thoughts stay as they were emitted, and the words that follow are those of the ANSWER.
func (a *Answer) Replace() error {
	if err := a.EndThought(); err != nil {
		return err
	}
	if len(a.text.String()) > a.sent {
		if err := a.chunk(false); err != nil {
			return err
		}
	}
	a.text.Reset()
	a.again, a.sent, a.chars, a.part, a.gap = true, 0, 0, 0, ""
	if a.client != nil {
		a.split = newSplitter(a.keep)
	}
	if a.voice != nil {
		a.voice = &voice{speakers: a.voice.speakers}
	}
	return nil
}

// begin begins a part behind the text so far.
func (a *Answer) begin() {
	if a.part = a.text.Len(); a.part > 0 {
		a.gap = "\n\n"
	}
}

// End ends the part of the text: nothing more is needed to know what it is.
func (a *Answer) End() error {
	if rest := a.shown.scan.end(a.picture); rest != "" {
		if err := a.plain(rest); err != nil {
			return err
		}
	}
	if split := a.split; split != nil {
		a.split = nil
		if err := a.take(split.end()); err != nil {
			return err
		}
	}
	if a.voice == nil || a.voice.over {
		return nil
	}
	return a.write(a.voice.end())
}

// take takes the pieces of a text.
func (a *Answer) take(pieces []piece) (err error) {
	for _, p := range pieces {
		switch p.kind {
		case words:
			err = a.speak(p.text)
		case thought:
			if a.again {
				continue
			}
			if err = a.Thought(p.text); err == nil {
				err = a.EndThought()
			}
		case turned:
			err = a.turn()
		case over:
			err = a.write(a.voice.end())
			a.voice.over = true
			a.voice.rest.WriteString(p.text)
		case cut:
			a.cut = true
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// turn makes the text of the part a thought, which takes the chunks of the text with it: the rest of
// the answer is another activity, whose chunks begin again.
func (a *Answer) turn() error {
	a.client.turns.Store(true)
	text := a.text.String()
	said := text[a.part:]
	if v := a.voice; v != nil {
		said += v.end() + v.rest.String()
		a.voice = &voice{speakers: v.speakers}
	}
	said = strings.TrimSpace(said)
	if said == "" {
		return nil
	}
	if !a.again {
		if err := a.say(stream.Message{Type: stream.Thought, Text: said, ActivityID: a.id()}); err != nil {
			return err
		}
		a.turns++
		a.gone += a.sent
	}
	a.text.Reset()
	a.sent, a.chars, a.gap = 0, 0, ""
	err := a.write(text[:a.part])
	a.begin()
	return err
}

// write appends words to the text.
func (a *Answer) write(text string) error {
	if text == "" {
		return nil
	}
	text, a.gap = a.gap+text, ""
	if err := a.Bound(a.gone + a.text.Len() + len(text)); err != nil {
		return err
	}
	a.text.WriteString(text)
	if a.chars += utf8.RuneCountInString(text); a.chars >= batch {
		return a.chunk(false)
	}
	return nil
}

// grown emits the text that no chunk has emitted.
func (a *Answer) grown() error {
	if a.chars == 0 {
		return nil
	}
	return a.chunk(false)
}

// isHeld reports whether the text may be a thought, as that of an earlier answer was.
func (a *Answer) isHeld() bool {
	return a.split != nil && a.split.state == uncertain && a.client.turns.Load()
}

// Thought appends to the reasoning, which ends with the next text or other message. It is
// emitted as one THOUGHT.
func (a *Answer) Thought(text string) error {
	a.thought.WriteString(event.Text(text))
	return a.Bound(a.thought.Len())
}

// Bound fails if the run's answer may not have so many bytes.
func (a *Answer) Bound(bytes int) error {
	if int64(bytes) > a.limit {
		return &Error{text: fmt.Sprintf("the answer is longer than %d bytes (max_bytes)", a.limit), cause: errFlood}
	}
	return nil
}

// EndThought emits the reasoning so far, if there is some.
func (a *Answer) EndThought() error {
	text := strings.TrimSpace(a.thought.String())
	a.thought.Reset()
	if text == "" {
		return nil
	}
	if err := a.grown(); err != nil {
		return err
	}
	a.thinks++
	return a.say(stream.Message{Type: stream.Thought, Text: text, ActivityID: fmt.Sprintf("%s/thought-%d", a.activity, a.thinks)})
}

// Say emits a message that is not a part of the answer's text.
func (a *Answer) Say(m stream.Message) error {
	if err := a.EndThought(); err != nil {
		return err
	}
	if err := a.grown(); err != nil { // it came before
		return err
	}
	return a.say(m)
}

// Done says that the server has marked the end of its answer. Further events may follow it
// for a short time.
func (a *Answer) Done() { a.done = true }

// Paced says that the events have brought a chunk by themselves.
func (a *Answer) Paced() { a.last = time.Now() }

// String returns the text so far, without a beginning that may still be thinking.
func (a *Answer) String() string { return a.text.String() }

// Finish emits the last chunk, a WARNING unless its text is empty, and the ANSWER, which
// replaces the chunks. The details are the answer's own keys; nil for none.
func (a *Answer) Finish(warning string, details json.RawMessage) error {
	err := a.finish()
	if err == nil {
		err = a.tellLarge()
	}
	if err == nil && warning != "" {
		err = a.say(stream.Message{Type: stream.Warning, Text: warning, ActivityID: a.id()})
	}
	if err == nil {
		err = a.say(stream.Message{Type: stream.Answer, Text: a.whole(), Details: a.withFiles(details), ActivityID: a.id()})
	}
	return err
}

// whole returns the text, without the white space before a header that ended it and before marks that were left out.
func (a *Answer) whole() string {
	if !a.cut && (a.voice == nil || !a.voice.over) {
		return a.text.String()
	}
	return strings.TrimRight(a.text.String(), " \t\r\n")
}

// maxRest bounds what a WARNING shows of a conversation that the model has made up, in characters.
const maxRest = 16 << 10

// Ending is the end of a model's answer.
type Ending struct {
	Key, Finish string // the name and the value of the model's own word for it, such as finish_reason and "stop"
	Tools       *Tools // the calls of the model
	// Kept is the data that the provider wants back with the calls: see Keep. Nil for nothing.
	Kept  json.RawMessage
	Usage any // the counts of tokens; nil if the server sent none
}

// Spent notes the counts of tokens that an agent's server has reported, and the model's word for the end of its answer.
func (a *Answer) Spent(usage any, finish string) {
	if a.measure == nil {
		return
	}
	raw, _ := json.Marshal(usage) // decoded JSON always encodes
	in, out := assembly.Tokens(raw)
	a.measure(assembly.Usage{Finish: finish, TokensIn: in, TokensOut: out})
}

// Finish ends a model's answer after the stream: with a WARNING if it is incomplete, and with the
// token counts and the calls of the client's tools as keys of the reply. An answer without text and
// without such a call is an error.
func (c *Client) Finish(a *Answer, e Ending) error {
	if err := a.End(); err != nil {
		return err
	}
	a.Spent(e.Usage, e.Finish)
	meaning := endOf(e.Finish)
	early := sentences[meaning]
	if meaning == endBroken {
		return c.Invalid(fmt.Sprintf("the server broke the answer off (%s %q)", e.Key, e.Finish), nil)
	}
	if e.Tools.goesOn && early == "" {
		return a.Calls(e.Tools.called, e.Tools.calls, e.Kept)
	}
	calls, empty := e.Tools.calls, fmt.Sprintf("the model returned no text (%s %q)", e.Key, e.Finish)
	if err := a.EndThought(); err != nil {
		return err
	}
	if a.thinks+a.turns > 0 {
		empty += ", but a reasoning: its server may take the answer for a part of it"
	}
	if early != "" {
		calls = nil // the last one may be incomplete
	}
	switch {
	case strings.TrimSpace(a.String()) != "" || len(calls)+len(a.shown.files) > 0:
	case e.Tools.unknown != "":
		return c.Invalid(fmt.Sprintf("the model called the tool %q instead of answering, and it was not offered", e.Tools.unknown), nil)
	case meaning == endFiltered || meaning == endRefused:
		return c.Rejected(empty, Declined)
	case meaning == endLength:
		// A repetition would end at the same point.
		return &Error{Permanent: true, text: c.Clean(empty), sentence: noRoom, cause: turn.ErrEmpty}
	default:
		return &Error{Permanent: early != "", text: c.Clean(empty), cause: turn.ErrEmpty}
	}
	if err := a.cite(); err != nil {
		return err
	}
	if early != "" {
		if err := a.write("\n\n(" + early + ")"); err != nil {
			return err
		}
	}
	own := map[string]any{}
	if e.Usage != nil {
		own["usage"] = e.Usage
	}
	if len(calls) > 0 {
		own["toolCalls"] = calls
	}
	var details json.RawMessage
	if len(own) > 0 {
		details, _ = json.Marshal(own) // texts and decoded JSON always encode
	}
	return a.Finish(early, details)
}

// Called takes the calls of a request: see assembly.Input.
type Called = func(text string, calls []runinput.Call, kept json.RawMessage)

// Calls ends a request with calls of Parley's tools. The text so far is a thought, because an answer follows.
func (a *Answer) Calls(called Called, calls []runinput.Call, kept json.RawMessage) error {
	if err := a.EndThought(); err != nil {
		return err
	}
	text := strings.TrimSpace(a.whole())
	if text != "" {
		if err := a.say(stream.Message{Type: stream.Thought, Text: text, ActivityID: a.id()}); err != nil {
			return err
		}
	}
	called(text, calls, kept)
	return nil
}

// Ask ends the answer with a REQUEST_INPUT: the agent needs an answer of the people in the
// thread. The text so far precedes the question. Files are of an ANSWER before it.
func (a *Answer) Ask(question string, details json.RawMessage) error {
	if len(a.shown.files) > 0 {
		if err := a.Finish("", nil); err != nil {
			return err
		}
		return a.say(stream.Message{Type: stream.RequestInput, Text: question, Details: details, ActivityID: a.id()})
	}
	if err := a.finish(); err != nil {
		return err
	}
	if a.text.Len() > 0 {
		question = a.whole() + "\n\n" + question
	}
	return a.say(stream.Message{Type: stream.RequestInput, Text: question, Details: details, ActivityID: a.id()})
}

// finish emits what is left before the end of the run.
func (a *Answer) finish() error {
	if err := a.End(); err != nil {
		return err
	}
	if err := a.EndThought(); err != nil {
		return err
	}
	if a.text.Len() > 0 {
		if err := a.chunk(true); err != nil {
			return err
		}
	}
	if a.voice == nil || !a.voice.over {
		return nil
	}
	return a.say(a.voice.warning())
}

// id is the activity of the answer's chunks and of the ANSWER.
func (a *Answer) id() string {
	if a.turns == 0 {
		return a.activity + "/answer"
	}
	return fmt.Sprintf("%s/answer-%d", a.activity, a.turns+1)
}

// chunk emits the text that no chunk has emitted, unless it is held.
func (a *Answer) chunk(final bool) error {
	if a.isHeld() {
		return nil
	}
	text := a.text.String()[a.sent:]
	a.sent, a.chars, a.last = a.text.Len(), 0, time.Now()
	if a.again {
		if text = ""; !final {
			return nil
		}
	}
	return a.say(stream.Message{Type: stream.StreamingChunk, Text: text, Final: final, ActivityID: a.id()})
}

func (a *Answer) say(m stream.Message) error {
	m.Time = time.Now()
	return a.emit(m)
}

// ToolCall returns the message that a model calls a tool.
func ToolCall(id, name, arguments string) stream.Message {
	details, _ := json.Marshal(map[string]string{"tool": name, "tool_event": "started", "tool_use_id": id, "arguments": arguments}) // strings
	return stream.Message{Type: stream.Update, Text: name, Details: details}
}
