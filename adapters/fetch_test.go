package adapters_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
)

// answers is a Fetcher whose calls fail with its errors in turn.
type answers []error

// Fetch implements adapters.Fetcher.
func (a *answers) Fetch(context.Context, event.Attachment) (io.ReadCloser, error) {
	err := (*a)[0]
	*a = (*a)[1:]
	return io.NopCloser(strings.NewReader("")), err
}

// TestFetchTriesAgain: a failure that may pass is tried again while there is time.
func TestFetchTriesAgain(t *testing.T) {
	broken := &adapters.SendError{Failure: adapters.Unclear, Err: io.EOF}
	limited := &adapters.SendError{Failure: adapters.RateLimited, RetryAfter: 5 * time.Second, Err: io.EOF}
	for name, test := range map[string]struct {
		answers answers
		left    int
		took    time.Duration
		ok      bool
	}{
		"a rate limit ends":     {answers{limited, broken, nil}, 0, 7 * time.Second, true},
		"it stays broken":       {answers{broken, broken, broken, broken, nil}, 1, 7 * time.Second, false},
		"the limit is too long": {answers{&adapters.SendError{Failure: adapters.RateLimited, RetryAfter: time.Minute, Err: io.EOF}, nil}, 1, 0, false},
		"the file is gone":      {answers{adapters.Permanently("gone"), nil}, 1, 0, false},
		"another error":         {answers{errors.New("unknown"), nil}, 1, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				began := time.Now()
				_, err := adapters.Fetch(ctx, &test.answers, event.Attachment{})
				if took := time.Since(began); (err == nil) != test.ok || len(test.answers) != test.left || took != test.took {
					t.Errorf("%v after %s, %d answers are left", err, took, len(test.answers))
				}
			})
		})
	}
}
