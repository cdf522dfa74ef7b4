// Package journaltest holds the promises that a journal makes on every engine.
//
// An engine's test calls Run. Each subtest states one promise in its name and
// reads as its specification; none knows which engine it stands on.
package journaltest

import (
	"testing"

	"parley/ingest/journal"
)

// promise is one thing that a journal guarantees.
type promise struct {
	name  string
	holds func(f *fixture)
}

// Run holds the journal to its promises on the engines that open returns. Each
// call must give an engine on an empty database with the journal's schema, and
// see that it is closed when its test ends; calls come side by side.
func Run(t *testing.T, open func(t *testing.T) journal.Engine) {
	for _, group := range []struct {
		name     string
		promises []promise
	}{
		{"way", wayPromises()},
		{"order", orderPromises()},
		{"accept", acceptPromises()},
		{"waiting", waitingPromises()},
		{"messages", messagePromises()},
		{"edits", editPromises()},
		{"deletes", deletePromises()},
		{"reactions", reactionPromises()},
		{"viewing", viewingPromises()},
		{"fence", fencePromises()},
		{"runs", runPromises()},
		{"bots", botPromises()},
		{"replies", replyPromises()},
		{"outbox", outboxPromises()},
		{"pace", pacePromises()},
		{"previews", previewPromises()},
		{"transcript", transcriptPromises()},
		{"prefaces", prefacePromises()},
		{"facts", factPromises()},
		{"time", timePromises()},
		{"retention", retentionPromises()},
		{"copies", copyPromises()},
		{"blobs", blobPromises()},
		{"exclusive leases", leasePromises()},
		{"gaps", gapPromises()},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, p := range group.promises {
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.holds(start(t, open))
				})
			}
		})
	}
	t.Run("nothing is lost or answered twice, and order is kept, whatever happens", func(t *testing.T) {
		modelHolds(t, open(t))
	})
	t.Run("the posts of a channel are apart and all of them leave, whoever is late", func(t *testing.T) {
		paceHolds(t, open(t))
	})
}
