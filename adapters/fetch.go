package adapters

import (
	"context"
	"errors"
	"io"
	"time"

	"parley/ingest/event"
	"parley/ingest/wake"
)

// fetchTries bounds the calls for one file, and fetchPause is the least wait after the first one. It
// doubles with each further one: Messages may show a message seconds before it has its files.
const (
	fetchTries = 4
	fetchPause = time.Second
)

// Fetch opens a file of a message. A rate limit, and another failure that may pass, is tried again
// if its wait ends before ctx does.
func Fetch(ctx context.Context, from Fetcher, attachment event.Attachment) (io.ReadCloser, error) {
	for tries := 1; ; tries++ {
		content, err := from.Fetch(ctx, attachment)
		failure, ok := errors.AsType[*SendError](err)
		if !ok || failure.Failure == Permanent || tries == fetchTries {
			return content, err
		}
		wait := max(failure.RetryAfter, fetchPause<<(tries-1))
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return nil, err
		}
		if !wake.After(ctx, wait) {
			return nil, errors.Join(ctx.Err(), err)
		}
	}
}
