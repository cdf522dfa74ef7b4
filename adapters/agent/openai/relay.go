package openai

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/assembly/stream"
)

const (
	// interval and batch pace the chunks: one leaves no sooner than interval after
	// the last, unless it has grown to so many characters.
	interval = 16 * time.Millisecond
	batch    = 200
	// grace is how long a server may keep the stream open after a finish_reason.
	grace = 250 * time.Millisecond
)

// relay passes one answer on: in chunks while it grows, then whole.
type relay struct {
	activity string
	limit    int64 // bytes of text
	emit     func(stream.Message) error
	refused  error // what emit failed with

	text   strings.Builder
	sent   int // so much of text has left in chunks
	chars  int // characters of text that have not
	last   time.Time
	due    <-chan time.Time // when the rest may leave; nil where there is none
	end    <-chan time.Time // when the stream has been waited for long enough
	finish string
}

func newRelay(run string, limit int64, emit func(stream.Message) error) *relay {
	return &relay{activity: run + "/answer", limit: limit, emit: emit}
}

// begun says whether anything has been passed on.
func (r *relay) begun() bool { return r.sent > 0 }

// follow relays until parts is closed, which says that broken may be read, or
// until the answer is complete.
func (r *relay) follow(parts <-chan part, broken *error) error {
	for {
		var err error
		select {
		case p, open := <-parts:
			if !open {
				return r.ended(*broken)
			}
			err = r.take(p)
		case <-r.due:
			err = r.chunk(false)
		case <-r.end:
			return r.complete()
		}
		if err != nil {
			return err
		}
	}
}

func (r *relay) take(p part) error {
	if p.finish != "" {
		r.finish = p.finish
	}
	if p.done && r.end == nil {
		r.end = time.After(grace)
	}
	if p.text == "" {
		return nil
	}
	if int64(r.text.Len()+len(p.text)) > r.limit {
		return &Error{words: fmt.Sprintf("the answer is longer than %d bytes (max_bytes)", r.limit), cause: errFlood}
	}
	r.text.WriteString(p.text)
	r.chars += utf8.RuneCountInString(p.text)
	wait := interval - time.Since(r.last)
	if wait <= 0 || r.chars >= batch {
		return r.chunk(false)
	}
	if r.due == nil {
		r.due = time.After(wait)
	}
	return nil
}

// chunk passes on what has gathered.
func (r *relay) chunk(final bool) error {
	text := r.text.String()[r.sent:]
	r.sent, r.chars, r.due, r.last = r.text.Len(), 0, nil, time.Now()
	return r.say(stream.Message{Type: stream.StreamingChunk, Text: text, Final: final})
}

// ended judges a stream that has no more: an answer that was complete before it
// broke is an answer.
func (r *relay) ended(broken error) error {
	switch {
	case r.end != nil:
		return r.complete()
	case broken != nil:
		return broken
	}
	return &Error{words: "the stream ended without finish_reason or [DONE]: the answer is cut off"}
}

func (r *relay) complete() error {
	text := r.text.String()
	if strings.TrimSpace(text) == "" {
		return &Error{
			Permanent: early(r.finish) != "", // it would end there again
			words:     fmt.Sprintf("the model ended without a text (finish_reason %q)", r.finish),
		}
	}
	if err := r.chunk(true); err != nil {
		return err
	}
	if words := early(r.finish); words != "" {
		if err := r.say(stream.Message{Type: stream.Warning, Text: words}); err != nil {
			return err
		}
	}
	return r.say(stream.Message{Type: stream.Answer, Text: text})
}

// early says why an answer that is there is not whole; empty where it is.
func early(finish string) string {
	switch finish {
	case "length":
		return "the answer ends at the model's length limit"
	case "content_filter":
		return "the answer was cut off by the provider's content filter"
	}
	return ""
}

func (r *relay) say(m stream.Message) error {
	m.ActivityID, m.Time = r.activity, time.Now()
	r.refused = r.emit(m)
	return r.refused
}
