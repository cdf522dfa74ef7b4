package journal

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"parley/ingest/wake"
)

// Journal is the durable store of envelopes, messages, runs and deliveries.
type Journal struct {
	engine Engine
	node   string
	lease  time.Duration
	now    func() time.Time
	copies wake.Signal            // is set if there are copies to check
	secret atomic.Pointer[[]byte] // of the threads' UUIDs; nil until it was read

	// followers are the readers that wait for changes, by the words that tell other nodes of a
	// change.
	followers wake.Group[string]
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
func New(engine Engine, options Options) *Journal {
	now := options.Now
	if now == nil {
		now = time.Now
	}
	return &Journal{engine: engine, node: options.Node, lease: options.Lease, now: now, copies: wake.NewSignal()}
}

// Close ends the engine.
func (j *Journal) Close() error { return j.engine.Close() }

// Probe reports whether the store can take a commit now. It waits for no lock, because
// the row that it makes has a name of its own. The row is gone when Probe ends.
func (j *Journal) Probe(ctx context.Context) error {
	name := "probe/" + uuid.NewString()
	return j.change(ctx, "", func(tx *txn) {
		tx.do(`INSERT INTO retention_progress (task, position) VALUES ($1, 0)`, name)
		tx.do(`DELETE FROM retention_progress WHERE task = $1`, name)
	})
}

var (
	// ErrFenced means that another claim of the thread exists, or that the work is
	// done already. Nothing was written; the caller must read the thread's work again.
	ErrFenced = errors.New("another claim of the thread exists")
	// ErrDelivered means that the delivery has ended or was begun by another node. The
	// claim may still hold.
	ErrDelivered = fmt.Errorf("the delivery has ended or another node has it: %w", ErrFenced)
	// ErrSettled means that the envelope is settled already.
	ErrSettled = errors.New("the envelope is settled already")
	// ErrNotFound means that the requested row does not exist.
	ErrNotFound = errors.New("not found")
)

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

// millis returns the stored form of a time: milliseconds since 1970, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Instant returns the time of a stored number of milliseconds since 1970, the zero time
// for 0.
func Instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob returns the value of a column of bytes. An empty one is not null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// number returns the stored form of a bool.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// nullable returns the value of a nullable column.
func nullable(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// optional returns the value of a nullable column, which is null for an empty text.
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}
