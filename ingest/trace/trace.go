// Package trace names the traces of messages and the spans in them, in the terms of W3C Trace Context. Every node finds the same
// names from the ids that the store has, so no name is stored.
//
// The id of a trace is the UUID of its message. A caller of our API may have begun the trace: then the message's metadata has the
// caller's place in it, under the key event.KeyTraceparent.
package trace

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"strings"

	"parley/ingest/event"
)

// Header is the header of a request that names its caller's place in a trace.
const Header = "Traceparent"

// Place is a span of a trace. The zero value is none.
type Place struct {
	Trace   [16]byte
	Span    [8]byte
	Sampled bool // the trace is recorded
}

// IsZero reports whether the place is none.
func (p Place) IsZero() bool { return p.Trace == [16]byte{} }

// ID returns the id of the trace, in hexadecimal.
func (p Place) ID() string { return hex.EncodeToString(p.Trace[:]) }

// String returns the value of Header for the place. It leaves out the flag of random ids, for which many programs refuse the value.
func (p Place) String() string {
	flags := "-00"
	if p.Sampled {
		flags = "-01"
	}
	return "00-" + p.ID() + "-" + hex.EncodeToString(p.Span[:]) + flags
}

// Parse reads a value of Header. It returns false for one that is not valid.
func Parse(value string) (p Place, ok bool) {
	const long = len("00-00000000000000000000000000000000-0000000000000000-00")
	if len(value) < long || value[:2] == "ff" || value[:2] == "00" && len(value) != long || len(value) > long && value[long] != '-' ||
		strings.ContainsFunc(value[:long], func(r rune) bool { return r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'f') }) ||
		value[2] != '-' || value[35] != '-' || value[52] != '-' {
		return p, false
	}
	var version, flags [1]byte
	for _, part := range []struct {
		text string
		into []byte
	}{{value[:2], version[:]}, {value[3:35], p.Trace[:]}, {value[36:52], p.Span[:]}, {value[53:55], flags[:]}} {
		if _, err := hex.Decode(part.into, []byte(part.text)); err != nil {
			return Place{}, false
		}
	}
	if p.Sampled = flags[0]&1 == 1; p.IsZero() || p.Span == [8]byte{} {
		return Place{}, false
	}
	return p, true
}

// At returns another place of the trace: the span of a thing that the parts of a name identify. The same name is the same span.
func (p Place) At(name ...string) Place {
	sum := sha256.Sum256([]byte(p.ID() + "\n" + strings.Join(name, "\n")))
	copy(p.Span[:], sum[:])
	p.Span[0] |= 1 // no span has the id 0
	return p
}

// Below returns the span of a thing below the place, as At does.
func (p Place) Below(name ...string) Place {
	return p.At(append([]string{hex.EncodeToString(p.Span[:])}, name...)...)
}

// Origin is where the trace of a message begins.
type Origin struct {
	// Place is the span of the message.
	Place
	// Caller is the span of the caller who has sent the message, in the same trace; zero for none.
	Caller Place
	// Cause is the span of the program that has injected the message, in another trace; zero for none.
	Cause Place
}

// Of returns the origin of the trace of a message. sample is the part of the traces that is recorded, from 0 to 1, if no caller has
// decided. A message that a program injects has a trace of its own, because it may join the turn of other people.
func Of(uuid, externalID string, metadata []byte, sample float64) (o Origin) {
	given, _ := Parse(event.Traceparent(metadata))
	if _, injected := event.InjectedBy(externalID); injected {
		o.Cause, given = given, Place{}
	}
	switch {
	case !given.IsZero():
		o.Place, o.Caller = given, given
	default:
		o.Trace = traceOf(uuid)
		o.Sampled = o.Cause.Sampled || o.Cause.IsZero() && samples(o.Trace, sample)
	}
	o.Place = o.At("message", uuid)
	return o
}

// traceOf returns the trace id of a message: its UUID, or a hash of another id.
func traceOf(uuid string) (id [16]byte) {
	if n, err := hex.Decode(id[:], []byte(strings.ReplaceAll(uuid, "-", ""))); err != nil || n != len(id) || id == [16]byte{} {
		sum := sha256.Sum256([]byte(uuid))
		copy(id[:], sum[:])
	}
	return id
}

// samples decides by the last 56 bits of a trace's id, which are random in a UUID of any version, as W3C Trace Context has it: every
// program that samples by them decides the same.
func samples(id [16]byte, part float64) bool {
	const all = 1 << 56
	return float64(binary.BigEndian.Uint64(id[8:])&(all-1)) >= (1-part)*all
}

type key struct{}

// With returns a context whose calls belong to a place.
func With(ctx context.Context, p Place) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns the place of a context; the zero value for none.
func From(ctx context.Context) Place {
	p, _ := ctx.Value(key{}).(Place)
	return p
}

// Into returns the metadata of a message that comes from the place of a context; see Of.
func Into(ctx context.Context, metadata []byte) []byte {
	p := From(ctx)
	if p.IsZero() || len(metadata) == 0 {
		return metadata
	}
	return event.WithTraceparent(metadata, p.String())
}

// SetHeader adds the place of a context to a request's headers, if there is one.
func SetHeader(ctx context.Context, header http.Header) {
	if p := From(ctx); !p.IsZero() {
		header.Set(Header, p.String())
	}
}
