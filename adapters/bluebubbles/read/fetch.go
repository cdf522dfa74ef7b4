package read

import (
	"context"
	"io"
	"net/url"

	"parley/adapters/bluebubbles/call"
	"parley/ingest/event"
)

// Fetch opens an attachment by its guid, as it was sent: the server converts some images and
// recordings otherwise. The caller closes the reader, and bounds its size and time.
func (r *Reader) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	return r.client.Open(ctx, "attachment/"+call.Escape(attachment.ID)+"/download", url.Values{"original": {"true"}})
}
