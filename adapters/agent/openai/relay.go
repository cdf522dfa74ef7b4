package openai

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"parley/assembly/stream"
)

const (
	// interval and batch pace the chunks. The next chunk is emitted interval after the last
	// one, or earlier if it has reached batch characters.
	interval = 16 * time.Millisecond
	batch    = 200
	// grace bounds the time that a server may keep the stream open after a finish_reason.
	grace = 250 * time.Millisecond
)

// relay emits one answer: first in chunks, then as a whole.
type relay struct {
	activity string
	limit    int64 // bytes of text
	emit     func(stream.Message) error
	refused  error // the error of emit

	text   strings.Builder
	sent   int // bytes of text that chunks have emitted
	chars  int // characters of text that no chunk has emitted
	last   time.Time
	due    <-chan time.Time // fires when the next chunk is due; nil if there is none
	end    <-chan time.Time // fires when the wait for the stream's end is over
	finish string
}

func newRelay(run string, limit int64, emit func(stream.Message) error) *relay {
	return &relay{activity: run + "/answer", limit: limit, emit: emit}
}

// begun reports whether a chunk was emitted.
func (r *relay) begun() bool { return r.sent > 0 }

// follow relays parts until the answer is complete or parts is closed. broken may be read
// only after parts was closed.
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
		return &Error{text: fmt.Sprintf("the answer is longer than %d bytes (max_bytes)", r.limit), cause: errFlood}
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

// chunk emits the text that no chunk has emitted.
func (r *relay) chunk(final bool) error {
	text := r.text.String()[r.sent:]
	r.sent, r.chars, r.due, r.last = r.text.Len(), 0, nil, time.Now()
	return r.say(stream.Message{Type: stream.StreamingChunk, Text: text, Final: final})
}

// ended handles the end of the stream. If the answer was complete before the stream failed,
// it counts.
func (r *relay) ended(broken error) error {
	switch {
	case r.end != nil:
		return r.complete()
	case broken != nil:
		return broken
	}
	return &Error{text: "the stream ended without finish_reason or [DONE]: the answer is incomplete"}
}

func (r *relay) complete() error {
	text := r.text.String()
	if strings.TrimSpace(text) == "" {
		return &Error{
			Permanent: early(r.finish) != "", // a repetition would end at the same point
			text:      fmt.Sprintf("the model returned no text (finish_reason %q)", r.finish),
		}
	}
	if err := r.chunk(true); err != nil {
		return err
	}
	if text := early(r.finish); text != "" {
		if err := r.say(stream.Message{Type: stream.Warning, Text: text}); err != nil {
			return err
		}
	}
	return r.say(stream.Message{Type: stream.Answer, Text: text})
}

// early returns the reason if an answer is incomplete, and an empty string otherwise.
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
