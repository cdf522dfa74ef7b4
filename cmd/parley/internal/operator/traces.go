package operator

import (
	"context"

	"parley/ingest/journal/listing"
	"parley/ingest/trace"
)

// Traced names the trace of a message or a run. It is empty if no trace is recorded.
type Traced struct {
	TraceID   string `json:"trace_id,omitempty"`
	TraceLink string `json:"trace_link,omitempty"` // the address of its page; empty for none
}

// traceOf names the trace of a message.
func (s *Service) traceOf(m listing.Traced) (named Traced) {
	settings, on := s.Config().Traces()
	if !on {
		return named
	}
	if o := trace.Of(m.UUID, m.ExternalID, m.Metadata, settings.Sample); o.Sampled {
		named.TraceID, named.TraceLink = o.ID(), settings.LinkTo(o.ID())
	}
	return named
}

// traceOfRun names the trace of a run.
func (s *Service) traceOfRun(ctx context.Context, run string) Traced {
	if _, on := s.Config().Traces(); !on {
		return Traced{}
	}
	first, err := s.Journal.Listing.FirstOf(ctx, run)
	if err != nil { // its messages have another run since
		return Traced{}
	}
	return s.traceOf(first)
}

// traceIn names the trace of the run of a life, or else that of its message.
func (s *Service) traceIn(ctx context.Context, l *listing.Life) Traced {
	if l.Run != nil {
		if named := s.traceOfRun(ctx, l.Run.ID); named.TraceID != "" {
			return named
		}
	}
	if m := l.Message; m != nil {
		return s.traceOf(listing.Traced{UUID: m.UUID, ExternalID: m.ExternalID, Metadata: m.Metadata})
	}
	return Traced{}
}
