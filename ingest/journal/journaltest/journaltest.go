// Package journaltest tests the promises that a journal keeps on every engine.
//
// Each promise belongs to one part of the journal. On SQLite, the test of a part's package calls
// SQLite, so that a fault in a part fails a test of its package. The tests of this package call
// Run for PostgreSQL. The name of each subtest states one promise, and its body reads as the
// specification. No subtest depends on the engine.
package journaltest

import (
	"testing"

	"parley/ingest/journal/storage"
)

// part has the promises of one package of the journal.
type part struct {
	name   string // the package's folder
	groups []group
	models []model
}

type group struct {
	name     string
	promises []promise
}

// promise is one guarantee of a journal.
type promise struct {
	name  string
	holds func(f *fixture)
}

// model is one guarantee of a journal under random operations.
type model struct {
	name  string
	holds func(t *testing.T, engine storage.Engine)
}

// parts returns all promises, each once.
func parts() []part {
	return []part{
		{name: "journal", groups: []group{
			{"path", pathPromises()},
			{"fence", fencePromises()},
			{"facts", factPromises()},
			{"retention", retentionPromises()},
		}, models: []model{
			{"no message is lost or answered twice, and order is kept, under random interleavings", modelHolds},
		}},
		{name: "envelopes", groups: []group{
			{"order", orderPromises()},
			{"accept", acceptPromises()},
			{"waiting", waitingPromises()},
			{"dead letters", deadLetterPromises()},
		}},
		{name: "record", groups: []group{
			{"accept at once", atOncePromises()},
			{"edits", editPromises()},
			{"deletes", deletePromises()},
			{"words", wordPromises()},
			{"reactions", reactionPromises()},
			{"bots", botPromises()},
			{"imports", importPromises()},
		}},
		{name: "messages", groups: []group{
			{"messages", messagePromises()},
			{"notices", noticePromises()},
			{"listing", listingPromises()},
			{"thread history", threadHistoryPromises()},
			{"history", historyPromises()},
		}},
		{name: "runs", groups: []group{
			{"runs", runPromises()},
			{"attempts", attemptPromises()},
			{"retries", retryPromises()},
			{"inputs", inputPromises()},
			{"late files", lateFilePromises()},
			{"replies", replyPromises()},
			{"events", eventPromises()},
			{"rows of runs", rowPromises()},
			{"later answers", laterPromises()},
			{"sessions of agents", sessionPromises()},
			{"stops", stopPromises()},
			{"questions", questionPromises()},
			{"previews", previewPromises()},
			{"state posts", statePromises()},
			{"transcript", transcriptPromises()},
			{"time", timePromises()},
			{"runs of clients", namedPromises()},
		}},
		{name: "outbox", groups: []group{
			{"outbox", outboxPromises()},
			{"posts of programs", postPromises()},
			{"held deliveries", heldPromises()},
			{"pace", pacePromises()},
		}, models: []model{
			{"the posts of a channel keep their distance and all leave, under random delays", paceHolds},
		}},
		{name: "threads", groups: []group{
			{"threads", threadPromises()},
			{"tickets", ticketPromises()},
			{"adapter state", adapterStatePromises()},
			{"keys", keyPromises()},
			{"exclusive leases", leasePromises()},
			{"gaps", gapPromises()},
		}},
		{name: "files", groups: []group{
			{"copies", copyPromises()},
			{"blobs", blobPromises()},
		}},
		{name: "budgets", groups: []group{{"budgets", budgetPromises()}}},
		{name: "workstreams", groups: []group{{"workstreams", workstreamPromises()}}},
		{name: "schedules", groups: []group{{"schedules", schedulePromises()}}},
		{name: "strangers", groups: []group{{"strangers", strangerPromises()}}},
		{name: "audit", groups: []group{{"actions", actionPromises()}}},
		{name: "listing", groups: []group{{"counts", countPromises()}, {"filters", filterPromises()}}},
		{name: "usage", groups: []group{{"usage", usagePromises()}}},
		{name: "people", groups: []group{{"people", peoplePromises()}}},
		{name: "search", groups: []group{{"search", searchPromises()}}},
	}
}

// Run tests all promises on the engines that open returns. Each call of open must return an
// engine on an empty database with the journal's schema, and ensure that the engine is closed
// when its test ends. Calls are concurrent.
func Run(t *testing.T, open func(t *testing.T) storage.Engine) {
	for _, p := range parts() {
		p.run(t, open)
	}
}

func (p part) run(t *testing.T, open func(t *testing.T) storage.Engine) {
	for _, g := range p.groups {
		t.Run(g.name, func(t *testing.T) {
			for _, p := range g.promises {
				t.Run(p.name, func(t *testing.T) {
					t.Parallel()
					p.holds(start(t, open))
				})
			}
		})
	}
	for _, m := range p.models {
		t.Run(m.name, func(t *testing.T) { m.holds(t, open(t)) })
	}
}
