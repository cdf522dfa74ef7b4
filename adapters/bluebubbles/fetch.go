package bluebubbles

import (
	"context"
	"io"
	"net/url"

	"parley/adapters/httpcall"
	"parley/ingest/event"
)

// Fetch opens an attachment by its guid, as it was sent: the server converts some images and
// recordings otherwise. The caller closes the reader, and bounds its size and time.
func (a *Adapter) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	address := a.address("attachment/"+escape(attachment.ID)+"/download", url.Values{"original": {"true"}})
	response, err := httpcall.Open(ctx, a.client, address, "")
	if err != nil {
		return nil, a.hideIn(err)
	}
	return response.Body, nil
}
