// Package journal stores envelopes, messages, runs and deliveries durably, in order, each
// once.
package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"parley/ingest/journal/budgets"
	"parley/ingest/journal/files"
	"parley/ingest/journal/places"
	"parley/ingest/journal/storage"
)

// Journal is the durable store of envelopes, messages, runs and deliveries.
type Journal struct {
	*places.Places
	*files.Files
	*budgets.Budgets

	db  *storage.DB
	ids *places.IDs
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
}

// New returns the journal that is stored in engine.
func New(engine storage.Engine, options Options) *Journal {
	now := options.Now
	if now == nil {
		now = time.Now
	}
	db := &storage.DB{Engine: engine, Node: options.Node, Lease: options.Lease, Now: now}
	ids := places.NewIDs(db)
	return &Journal{Places: places.New(db, ids), Files: files.New(db), Budgets: budgets.New(db), db: db, ids: ids}
}

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

// Heard takes words that another node sent by the engine's Notify. It returns false if they
// are not the journal's.
func (j *Journal) Heard(words string) bool { return j.db.Heard(words) }

// Missed wakes all readers, because words of other nodes may have been lost.
func (j *Journal) Missed() { j.db.Missed() }

// ErrDelivered means that the delivery has ended or was begun by another node. The claim may still
// hold.
var ErrDelivered = fmt.Errorf("the delivery has ended or another node has it: %w", storage.ErrFenced)

// ErrSettled means that the envelope is settled already.
var ErrSettled = errors.New("the envelope is settled already")

// Author is the kind of a message's author.
type Author string

// The authors.
const (
	ByHuman  Author = "human"
	ByBot    Author = "bot"
	ByAgent  Author = "agent"
	BySystem Author = "system" // Parley itself; see Notice
)

// Role returns the author's external role: user, assistant or system.
func (a Author) Role() string {
	switch a {
	case ByAgent:
		return "assistant"
	case BySystem:
		return "system"
	}
	return "user"
}

// Trigger is the effect of a message on the agent.
type Trigger string

// The triggers.
const (
	TriggerRun     Trigger = "run"
	TriggerPassive Trigger = "passive"
	TriggerNone    Trigger = "none"
)

// Origin is the way by which a message came into the journal.
type Origin string

// The origins.
const (
	Live        Origin = "live"
	Late        Origin = "late"
	FromContext Origin = "context"
	API         Origin = "api"
	Imported    Origin = "import"
)

// ContractVersion is the version of the ingest contract of new rows. The content of rows
// of version 0 begins with the message's header.
const ContractVersion = 1
