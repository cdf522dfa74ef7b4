package bluebubbles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"parley/ingest/event"
)

// Fetch opens an attachment by its guid, as it was sent: the server converts some images and
// recordings otherwise. The caller closes the reader, and bounds its size and time.
func (a *Adapter) Fetch(ctx context.Context, attachment event.Attachment) (io.ReadCloser, error) {
	address := a.address("attachment/"+escape(attachment.ID)+"/download", url.Values{"original": {"true"}})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address of the attachment is not valid")
	}
	response, err := a.client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("fetch attachment %s: %w", attachment.ID, a.withoutURL(err))
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		return nil, fmt.Errorf("fetch attachment %s: bluebubbles answered %s", attachment.ID, response.Status)
	}
	return response.Body, nil
}
