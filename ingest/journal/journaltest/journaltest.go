// Package journaltest tests the promises that a journal keeps on every engine.
//
// An engine's test calls Run. The name of each subtest states one promise, and its body
// reads as the specification. No subtest depends on the engine.
package journaltest

import (
	"testing"

	"parley/ingest/journal/storage"
)

// promise is one guarantee of a journal.
type promise struct {
	name  string
	holds func(f *fixture)
}

// Run tests the journal's promises on the engines that open returns. Each call of open
// must return an engine on an empty database with the journal's schema, and ensure that
// the engine is closed when its test ends. Calls are concurrent.
func Run(t *testing.T, open func(t *testing.T) storage.Engine) {
	for _, group := range []struct {
		name     string
		promises []promise
	}{
		{"path", pathPromises()},
		{"order", orderPromises()},
		{"accept", acceptPromises()},
		{"accept at once", atOncePromises()},
		{"waiting", waitingPromises()},
		{"dead letters", deadLetterPromises()},
		{"messages", messagePromises()},
		{"edits", editPromises()},
		{"deletes", deletePromises()},
		{"words", wordPromises()},
		{"reactions", reactionPromises()},
		{"fence", fencePromises()},
		{"runs", runPromises()},
		{"attempts", attemptPromises()},
		{"retries", retryPromises()},
		{"inputs", inputPromises()},
		{"late files", lateFilePromises()},
		{"bots", botPromises()},
		{"budgets", budgetPromises()},
		{"replies", replyPromises()},
		{"events", eventPromises()},
		{"rows of runs", rowPromises()},
		{"tickets", ticketPromises()},
		{"notices", noticePromises()},
		{"later answers", laterPromises()},
		{"stops", stopPromises()},
		{"questions", questionPromises()},
		{"listing", listingPromises()},
		{"threads", threadPromises()},
		{"imports", importPromises()},
		{"outbox", outboxPromises()},
		{"posts of programs", postPromises()},
		{"held deliveries", heldPromises()},
		{"pace", pacePromises()},
		{"previews", previewPromises()},
		{"state posts", statePromises()},
		{"transcript", transcriptPromises()},
		{"workstreams", workstreamPromises()},
		{"schedules", schedulePromises()},
		{"thread history", threadHistoryPromises()},
		{"facts", factPromises()},
		{"adapter state", adapterStatePromises()},
		{"time", timePromises()},
		{"retention", retentionPromises()},
		{"copies", copyPromises()},
		{"blobs", blobPromises()},
		{"keys", keyPromises()},
		{"runs of clients", namedPromises()},
		{"history", historyPromises()},
		{"exclusive leases", leasePromises()},
		{"gaps", gapPromises()},
		{"actions", actionPromises()},
		{"counts", countPromises()},
		{"search", searchPromises()},
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
	t.Run("no message is lost or answered twice, and order is kept, under random interleavings", func(t *testing.T) {
		modelHolds(t, open(t))
	})
	t.Run("the posts of a channel keep their distance and all leave, under random delays", func(t *testing.T) {
		paceHolds(t, open(t))
	})
}
