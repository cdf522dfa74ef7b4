package adaptertest_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/adapters/adaptertest"
	"parley/adapters/web/payload"
	"parley/config"
	"parley/ingest/event"
)

// TestPlatformsKeepContract checks every platform's normaliser with its own recordings.
func TestPlatformsKeepContract(t *testing.T) {
	for _, platform := range config.Platforms() {
		if platform.Name == event.Web {
			platform.Normalizer = stamped{}
		}
		t.Run(string(platform.Name), func(t *testing.T) {
			adaptertest.Run(t, platform, "../../testdata/"+string(platform.Name)+"/*.jsonl")
		})
	}
}

// stamped is the web's normaliser behind a handler that adds a message id to a body without
// one. The same body always gets the same id.
type stamped struct{ payload.Normalizer }

func (s stamped) stamp(envelope event.Envelope) event.Envelope {
	b, err := payload.ReadBody(envelope.Body)
	if err == nil && b.ClientMessageID == "" && b.MessageID == "" {
		b.MessageID = uuid.NewSHA1(uuid.NameSpaceURL, envelope.Body).String()
		envelope.Body = b.Bytes()
	}
	return envelope
}

func (s stamped) Keys(envelope event.Envelope, facts adapters.Facts) event.Keys {
	return s.Normalizer.Keys(s.stamp(envelope), facts)
}

func (s stamped) Normalize(ctx context.Context, envelope event.Envelope, directory adapters.Directory) (event.Event, error) {
	return s.Normalizer.Normalize(ctx, s.stamp(envelope), directory)
}
