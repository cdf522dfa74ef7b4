package read

import (
	"context"

	"parley/ingest/event"
)

// ReadQuoted implements adapters.QuotedReader: a webhook has only the guid of the bubble that a message answers.
func (r *Reader) ReadQuoted(ctx context.Context, guid string) (event.Envelope, error) {
	row, err := r.client.Message(ctx, guid)
	if err != nil {
		return event.Envelope{}, err
	}
	return r.client.Row(row), nil
}
