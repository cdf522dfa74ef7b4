package runapi

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"strconv"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/ingest/event"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

const (
	// reconnects, firstPause and longestPause are the protocol's rules for a lost stream. The
	// pauses double, and have 10 % jitter.
	reconnects   = 10
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// follower reads the stream of a run.
type follower struct {
	agent *Agent
	input assembly.Input
	run   string
	emit  func(stream.Message) error
	paced func() // tells that a chunk has come
	// speech keeps the messages in the agent's own voice.
	speech *remote.Speech

	since int64 // the latest time of a message, in milliseconds
	// taken counts the equal messages that were emitted, and heard those that this connection has
	// brought. A later connection may bring messages of an earlier one again; equal messages of one
	// connection are different ones.
	taken, heard map[[sha256.Size]byte]int
	// numbered is the message of each SSE id. The server recounts if it has given one id to two messages.
	// Then no message is recognised by its id.
	numbered map[string][sha256.Size]byte
	recounts bool

	// unread is the fault of the last event, if it could not be read; nil otherwise. A lost connection may have cut the
	// event, so the run's WARNING waits for another event. told are the unreadable events that have had their WARNING.
	unread *unread
	told   map[[sha256.Size]byte]bool

	begun    bool // an event has come
	answered bool
	ended    bool
	failure  error // the end of the run as an error
	moved    bool  // this connection has brought a message that no later one will bring
}

// maxTold bounds the WARNINGs about unreadable messages of a run.
const maxTold = 10

// unread is a message that could not be read.
type unread struct {
	sum   [sha256.Size]byte
	fault error
}

func newFollower(a *Agent, input assembly.Input, emit func(stream.Message) error) *follower {
	return &follower{
		agent: a, input: input, run: input.RunID, emit: emit, paced: func() {}, speech: remote.NewSpeech(input.Speakers),
		taken: map[[sha256.Size]byte]int{}, heard: map[[sha256.Size]byte]int{}, numbered: map[string][sha256.Size]byte{}, told: map[[sha256.Size]byte]bool{},
	}
}

// follow reads the stream until the run ends, and continues a lost stream.
func (f *follower) follow(ctx context.Context) error {
	for lost := 0; ; lost++ {
		f.moved = false
		err := f.connect(ctx)
		switch {
		case f.ended:
			return f.failure
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !isLost(err) || lost == reconnects:
			return err
		}
		if f.moved {
			lost = 0
		}
		pause := wake.Backoff(firstPause, longestPause, lost)
		if fault, ok := errors.AsType[*remote.Error](err); ok {
			pause = max(pause, fault.RetryAfter)
		}
		select {
		case <-time.After(pause + rand.N(pause/10)):
		case <-ctx.Done():
		}
	}
}

// isLost reports whether a stream that ended with err may be continued.
func isLost(err error) bool {
	fault, ok := errors.AsType[*remote.Error](err)
	return ok && !fault.Permanent && !fault.Flood()
}

// connect reads the stream once.
func (f *follower) connect(ctx context.Context) error {
	path := "runs/" + url.PathEscape(f.run) + "/stream?since=" + strconv.FormatInt(f.since, 10)
	request, err := f.agent.request(ctx, path, f.run, nil)
	if err != nil {
		return err
	}
	response, err := f.agent.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Close()
	f.heard, f.unread = map[[sha256.Size]byte]int{}, nil
	if f.begun {
		response.Begun() // a run that has begun may be silent for longer
	}
	answer := remote.NewAnswer(f.run, f.agent.config.MaxBytes, f.emit)
	f.paced = answer.Paced
	err = f.agent.client.Follow(response, answer, "COMPLETE or TERMINATED", func(e remote.Event) error {
		err := f.read(ctx, e)
		if f.ended {
			answer.Done()
		}
		return err
	})
	if isLost(err) && f.unread != nil {
		return f.unread.fault
	}
	return err
}

// read reads one event of the stream. It ignores events after the end of the run. A message that cannot be read is left out,
// with a WARNING, as the protocol's own client leaves it out: the answer may stand behind it.
func (f *follower) read(ctx context.Context, e remote.Event) error {
	f.begun = true
	if f.ended {
		return nil
	}
	if err := f.tell(); err != nil {
		return err
	}
	if m, ok := chunkOf(e.Data); ok {
		return f.take(ctx, m, e)
	}
	if isControl(e.Data) {
		return nil
	}
	m, err := stream.Parse(e.Data)
	if err != nil {
		f.unread = &unread{sha256.Sum256(e.Data), f.agent.client.Invalid("the stream contains an invalid message", err)}
		return nil
	}
	return f.take(ctx, m, e)
}

// tell emits a WARNING about the last event, if it could not be read and no connection has told it.
func (f *follower) tell() error {
	u := f.unread
	f.unread = nil
	if u == nil || f.told[u.sum] || len(f.told) == maxTold {
		return nil
	}
	f.told[u.sum] = true
	return f.emit(stream.Message{Type: stream.Warning, Text: "A message of the agent is left out, because it cannot be read: " + u.fault.Error()})
}

// chunkOf returns a chunk in the compact form that has a text and what belongs to it, as nearly all messages of a run are;
// false for any other message.
func chunkOf(raw []byte) (m stream.Message, ok bool) {
	said := false
	word := func(value []byte) (text string, ok bool) {
		if value[0] != '"' {
			return "", false
		}
		text, err := event.Unquote(value)
		return text, err == nil
	}
	ok = remote.Members(raw, func(key, value []byte) (ok bool) {
		switch string(key) {
		case "t":
			said = string(value) == "12"
			return said
		case "m":
			m.Text, ok = word(value)
		case "i":
			m.ActivityID, ok = word(value)
		case "w":
			m.Workstream, ok = word(value)
		case "ts":
			ms, err := strconv.ParseInt(string(value), 10, 64)
			if ok = err == nil && ms > 0 && ms < 1<<53; ok {
				m.Time = time.UnixMilli(ms).UTC()
			}
		case "f":
			m.Final, ok = string(value) == "1", string(value) == "1" || string(value) == "0"
		}
		return ok
	})
	if m.Workstream == stream.Main {
		m.Workstream = ""
	}
	m.Type = stream.StreamingChunk
	return m, ok && said
}

// isControl reports whether an event is a frame of the protocol's connection, and no message of the run.
func isControl(raw []byte) bool {
	var frame struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &frame) == nil && (frame.Type == "ping" || frame.Type == "pong" || frame.Type == "ack")
}

// take emits a message, unless it was emitted over an earlier connection, and notes the end
// of the run.
func (f *follower) take(ctx context.Context, m stream.Message, e remote.Event) error {
	if f.known(m, e) {
		return nil
	}
	if m.Type == stream.Question { // the turn's own message
		return nil
	}
	main := m.Workstream == "" || m.Workstream == stream.Main
	if main {
		f.answered = f.answered || m.Type == stream.Answer || m.Type == stream.RequestInput || m.Type == stream.Complete && m.Text != ""
		f.end(m)
	}
	if m.Type == stream.StreamingChunk {
		f.paced()
	}
	for _, said := range f.speech.Say(m) {
		if err := f.emit(said); err != nil {
			return err
		}
	}
	return f.call(ctx, m)
}

// end notes the end of the run, if the message of the main workstream is one.
func (f *follower) end(m stream.Message) {
	switch m.Type {
	case stream.Complete, stream.RequestInput, stream.Idle: // without an ANSWER, the streamed text is one
		f.ended = true
	case stream.Terminated:
		f.ended = true
		if !f.answered {
			f.failure = f.agent.client.Failure("the run ended with "+m.Type.String()+" and without an answer: "+m.Text, 0)
		}
	}
}

// known reports whether a message was emitted over an earlier connection. The server sends messages
// with the very time of since again, or more of them. They are recognised by their SSE id, or else as
// a whole. A message without an id and a time, such as a chunk, is never sent again.
func (f *follower) known(m stream.Message, e remote.Event) bool {
	if e.ID == "" && m.Time.IsZero() {
		return false
	}
	whole := sha256.Sum256(e.Data)
	if e.ID != "" {
		first, numbered := f.numbered[e.ID]
		f.recounts = f.recounts || numbered && first != whole
		f.numbered[e.ID] = whole
	}
	byID := e.ID != "" && !f.recounts
	if !byID && m.Time.IsZero() {
		return false
	}
	if !m.Time.IsZero() {
		f.since = max(f.since, m.Time.UnixMilli())
	}
	keys := [][sha256.Size]byte{whole}
	if e.ID != "" {
		keys = append(keys, sha256.Sum256(append([]byte("id "), e.ID...)))
	}
	for _, key := range keys {
		f.heard[key]++
	}
	key := whole
	if byID {
		key = keys[1]
	}
	if f.heard[key] <= f.taken[key] {
		return true
	}
	for _, key := range keys {
		f.taken[key]++
	}
	f.moved = true
	return false
}
