package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"parley/ingest/event"
)

// Journal is the durable store of envelopes, messages, runs and deliveries.
type Journal struct {
	engine Engine
	node   string
	lease  time.Duration
	now    func() time.Time
	served atomic.Pointer[string] // the workspaces that this node knows, between commas; nil: all
}

// Options are what a Journal may be told beside its engine. The zero value is
// an embedded store's.
type Options struct {
	// Node names this process among those that share the store; unique for ever.
	Node string
	// Lease is how long a claim holds without being renewed. Zero is for an
	// engine that admits one process at a time: a claim then ends with it.
	Lease time.Duration
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// New returns the journal that engine keeps.
func New(engine Engine, options Options) *Journal {
	now := options.Now
	if now == nil {
		now = time.Now
	}
	return &Journal{engine: engine, node: options.Node, lease: options.Lease, now: now}
}

// write runs fn in a transaction and returns what it made, once that is
// durable. Where it is not, or nobody knows, what fn made is not looked at.
func write[T any](ctx context.Context, j *Journal, fn func(tx Tx) (T, error)) (T, error) {
	made := new(T)
	err := j.engine.Write(ctx, func(tx Tx) (err error) {
		*made, err = fn(tx)
		return err
	})
	if err != nil {
		return *new(T), err
	}
	return *made, nil
}

// Close ends the engine.
func (j *Journal) Close() error { return j.engine.Close() }

var (
	// ErrFenced means that the thread has been claimed by somebody else since, or
	// that the work was done already: nothing was written, and what there is to
	// do now must be read anew.
	ErrFenced = errors.New("the thread's lease was taken over")
	// ErrDelivered means that the delivery has come to its end already, while the
	// lease may well hold.
	ErrDelivered = fmt.Errorf("the delivery has come to its end already: %w", ErrFenced)
	// ErrSettled means that the envelope has come to its end already.
	ErrSettled = errors.New("the envelope is settled already")
	// ErrNotFound means that the row asked for is not there.
	ErrNotFound = errors.New("not found")
)

// Author is who wrote a message.
type Author string

// The authors. Role is derived from them, since "ours" depends on who is asked.
const (
	ByHuman  Author = "human"
	ByBot    Author = "bot"
	ByAgent  Author = "agent"
	BySystem Author = "system"
	ByTool   Author = "tool"
)

// Role is how the author's words are shown to the outside: user or assistant,
// or the author's own name for system and tool.
func (a Author) Role() string {
	switch a {
	case ByHuman, ByBot:
		return "user"
	case ByAgent:
		return "assistant"
	}
	return string(a)
}

// Trigger says what a message asks for.
type Trigger string

// The triggers.
const (
	TriggerRun     Trigger = "run"
	TriggerPassive Trigger = "passive"
	TriggerNone    Trigger = "none"
)

// Origin says how a message came into the journal.
type Origin string

// The origins.
const (
	Live        Origin = "live"
	Late        Origin = "late"
	FromContext Origin = "context"
	API         Origin = "api"
	Import      Origin = "import"
)

// ContractVersion is the version of the ingest contract that rows are written
// under. Rows of version 0 have their header baked into the content.
const ContractVersion = 1

// millis is a time as it is stored: milliseconds since 1970, 0 for none.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// instant is the reverse of millis.
func instant(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// blob is a blob's value; an empty one is not null.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// optional is a nullable column's value.
func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// Self returns who we are in a workspace, as far as it is known.
func (j *Journal) Self(ctx context.Context, workspace string) (self event.Self, err error) {
	var raw string
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&raw}, `SELECT self FROM workspaces WHERE id = ?`, workspace)
		return err
	})
	if err != nil || raw == "" {
		return self, err
	}
	if err := json.Unmarshal([]byte(raw), &self); err != nil {
		return self, fmt.Errorf("read who we are in %s: %w", workspace, err)
	}
	return self, nil
}

// SetSelf remembers who we are in a workspace, and makes the envelopes that
// were waiting to know it due. Where that is known already it writes nothing: every
// node is told at its start. An error may leave some of the envelopes to the time
// at which they are looked at again anyway.
func (j *Journal) SetSelf(ctx context.Context, workspace string, self event.Self) error {
	known, err := j.Self(ctx, workspace)
	if err == nil && known == self {
		return nil
	}
	raw, err := json.Marshal(self)
	if err != nil {
		return err
	}
	if err := j.engine.Write(ctx, func(tx Tx) error {
		return tx.Later(nil, nil, `INSERT INTO workspaces (id, self) VALUES (?, ?)
			ON CONFLICT (id) DO UPDATE SET self = excluded.self`, workspace, string(raw))
	}); err != nil {
		return err
	}
	return j.wake(ctx, workspace)
}

// wake makes the postponed envelopes of a workspace due.
func (j *Journal) wake(ctx context.Context, workspace string) error {
	now := millis(j.now())
	threads, err := j.threads(ctx, `intake_at > ? AND workspace = ?`, now, workspace)
	if err != nil {
		return err
	}
	return j.eachThread(ctx, threads, func(tx Tx, thread int64) error {
		if err := tx.Later(nil, nil, `UPDATE threads SET intake_at = ? WHERE id = ? AND intake_at > ?`, now, thread, now); err != nil {
			return err
		}
		return tx.Later(nil, nil, `UPDATE envelopes SET not_before = 0 WHERE thread = ? AND state = 'pending' AND not_before > ?`, thread, now)
	})
}

// ChannelType returns what payloads have told of a channel.
func (j *Journal) ChannelType(ctx context.Context, workspace, channel string) (event.ChannelType, error) {
	var kind string
	err := j.engine.Read(single(ctx), func(tx Tx) error {
		_, err := tx.Row([]any{&kind}, `SELECT type FROM channels WHERE workspace = ? AND id = ?`, workspace, channel)
		return err
	})
	return event.ChannelType(kind), err
}
