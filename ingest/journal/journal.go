// Package journal stores envelopes, messages, runs and deliveries durably, in order, each
// once.
package journal

import (
	"context"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/audit"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/files"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/people"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/threads"
	"parley/ingest/journal/usage"
	"parley/ingest/journal/workstreams"
)

// Journal is the durable store of envelopes, messages, runs and deliveries.
type Journal struct {
	Threads     *threads.Threads
	Files       *files.Files
	Budgets     *budgets.Budgets
	Messages    *messages.Messages
	Envelopes   *envelopes.Envelopes
	Outbox      *outbox.Outbox
	Runs        *runs.Runs
	Recorder    *record.Recorder
	Workstreams *workstreams.Workstreams
	Schedules   *schedules.Schedules
	Strangers   *strangers.Strangers
	Audit       *audit.Audit
	Listing     *listing.Listing
	Search      *search.Search
	People      *people.People
	Usage       *usage.Usage

	db *storage.DB
}

// Options are the settings of a Journal. The zero value is right for an embedded store.
type Options struct {
	// Node names this process among those that share the store, in at most 50 bytes. No other
	// process ever has the same name.
	Node string
	// Lease is the duration of a claim that is not renewed. Zero is for an engine that
	// admits one process at a time: a claim then ends with the process.
	Lease time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Wall is the clock by which schedules tick; nil is Now.
	Wall func() time.Time
	// Shows reports whether the state posts of a workspace show some messages of an agent, by a name of turn.Shown. If
	// it is nil, there are none.
	Shows func(workspace, agent, messages string) bool
	// Rows returns the kinds of rows of the runs of a workspace; see runs.RowTool. If it is nil, an answer is the only one.
	Rows func(workspace string) []string
	// Zone returns the time zone of a workspace, in which its days begin; see usage.New.
	Zone func(workspace string) *time.Location
	// Remembered bounds the bytes of memory for the windows of threads.
	Remembered int64
}

// DefaultRemembered is the default of Options.Remembered in a daemon.
const DefaultRemembered = 16 << 20

// New returns the journal that is stored in engine.
func New(engine storage.Engine, options Options) *Journal {
	now := options.Now
	if now == nil {
		now = time.Now
	}
	wall := options.Wall
	if wall == nil {
		wall = now
	}
	db := &storage.DB{Engine: engine, Node: options.Node, Lease: options.Lease, Now: now, Shows: options.Shows, Rows: options.Rows}
	ids, stored := threads.NewIDs(db), files.New(db)
	accepted := envelopes.New(db, ids)
	recorder, index, used, asked := record.New(db, stored, accepted), search.New(db), usage.New(db, options.Zone), strangers.New(db)
	return &Journal{
		Threads: threads.New(db, ids), Files: stored, Budgets: budgets.New(db), Messages: messages.New(db), Envelopes: accepted,
		Outbox: outbox.New(db), Runs: runs.New(db, options.Remembered), Recorder: recorder,
		Workstreams: workstreams.New(db), Schedules: schedules.New(db, wall), Strangers: asked, Audit: audit.New(db), Listing: listing.New(db), Search: index, People: people.New(db, recorder, index, used, asked), Usage: used, db: db,
	}
}

// Engine returns the database, for work on the whole of it.
func (j *Journal) Engine() storage.Engine { return j.db.Engine }

// Close ends the engine.
func (j *Journal) Close() error { return j.db.Engine.Close() }

// Probe reports whether the store can take a commit now. It waits for no lock, because
// the row that it makes has a name of its own. The row is gone when Probe ends.
func (j *Journal) Probe(ctx context.Context) error {
	name := "probe/" + uuid.NewString()
	return j.db.Change(ctx, "", func(tx *storage.Txn) {
		tx.Do(`INSERT INTO retention_progress (task, position) VALUES ($1, 0)`, name)
		tx.Do(`DELETE FROM retention_progress WHERE task = $1`, name)
	})
}

// Facts returns facts of the database; none if the engine knows none.
func (j *Journal) Facts(ctx context.Context) (storage.Facts, error) {
	if d, ok := j.db.Engine.(storage.Describer); ok {
		return d.Facts(ctx)
	}
	return storage.Facts{}, nil
}

// Heard takes words that another node sent by the engine's Notify. It returns false if they
// are not the journal's.
func (j *Journal) Heard(words string) bool { return j.db.Heard(words) }

// Missed wakes all readers, because words of other nodes may have been lost.
func (j *Journal) Missed() { j.db.Missed() }
