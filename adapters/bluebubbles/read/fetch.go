package read

import (
	"context"
	"io"
	"net/url"

	"parley/adapters/bluebubbles/call"
	"parley/ingest/event"
)

// Fetch opens an attachment by its guid, as it was sent. If that form needs a conversion, the server makes a JPEG of a
// picture and an MP3 of a recording. The caller closes the reader, and bounds its size and time.
func (r *Reader) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	query := url.Values{"original": {"true"}}
	if attachment.NeedsConversion() {
		query = nil
	}
	return r.client.Open(ctx, "attachment/"+call.Escape(attachment.ID)+"/download", query)
}
