package ingest

import (
	"context"
	"encoding/json"

	"parley/adapters"
	"parley/ingest/event"
)

// ours is the body of an envelope in a form of our own, which is the same on each platform.
type ours interface {
	// keys returns the keys of the envelope, or the fault of the body.
	keys() (event.Keys, error)
	// event returns the event of the envelope, whose body has no fault.
	event(envelope event.Envelope) event.Event
}

// readOurs returns the body of an envelope in a form of our own with its keys; nil for the body of a platform.
func readOurs(envelope event.Envelope) (body ours, keys event.Keys, err error) {
	switch envelope.Transport {
	case event.ByOperator:
		body = &OperatorAnswer{}
	case event.ByParley:
		body = &internal{}
	case event.ByProgram:
		body = &injected{}
	default:
		return nil, keys, nil
	}
	if err = json.Unmarshal(envelope.Body, body); err == nil {
		keys, err = body.keys()
	}
	return body, keys, err
}

// withOurs normalises the envelopes in a form of our own, and leaves others to the adapter.
type withOurs struct{ adapters.Normalizer }

// Keys implements adapters.Normalizer.
func (n withOurs) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	body, keys, err := readOurs(envelope)
	switch {
	case body == nil:
		return n.Normalizer.Keys(envelope, facts)
	case err != nil:
		return event.Keys{Kind: event.KindOther, Dedupe: adapters.BodyKey(envelope.Body), Result: event.Refuse(err)}
	}
	return keys
}

// Normalize implements adapters.Normalizer.
func (n withOurs) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	body, _, err := readOurs(envelope)
	switch {
	case body == nil:
		return n.Normalizer.Normalize(ctx, envelope, directory)
	case err != nil:
		return event.Event{}, err
	}
	return body.event(envelope), nil
}
