package ingest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/threads"
	"parley/ingest/work"
)

// Settings are the settings of one channel.
type Settings struct {
	// Agent is the id of the agent that answers there.
	Agent  string
	Policy Policy
	// Coalesce and CoalesceMax are how long a turn waits for further messages.
	Coalesce, CoalesceMax time.Duration
	// RestartAfter is a time without messages. After it, a direct conversation starts again. 0 means never.
	RestartAfter time.Duration
	// Limits apply to the channel's runs. Those of the whole workspace also count the runs of
	// a channel that has limits of its own.
	Limits, WorkspaceLimits Limits
	// Tokens bound the tokens of the runs of a day in the workspace.
	Tokens budgets.Tokens
	// Approvers returns the users who may answer an agent's approvals; none if every admitted
	// one may.
	Approvers func(agent string) []string
	// Chooses says that the agent offers settings that people choose with commands.
	Chooses bool
	// Commands are the settings of the chat commands.
	Commands
	// KeepMetadata says that metadata is stored as it was given, without run hints.
	KeepMetadata bool
	// Asks reports whether a message may ask the agent with an id instead of Agent, by its
	// recipient_id. It is nil if no message may.
	Asks func(agent string) bool
	// HasAgent reports whether an injected message may ask the agent with an id, as Asks does for the messages of callers.
	HasAgent func(agent string) bool
	// API says that the messages of the workspace come from callers of our own API.
	API bool
	// LateAge replaces the policy's MaxAge for a backfilled message. 0 means that backfill is off.
	LateAge time.Duration
}

// Workspace is one configured account as ingest sees it.
type Workspace struct {
	ID         string
	Platform   event.Platform
	Senders    string // the namespace of sender ids
	Normalizer adapters.Normalizer
	// Names resolves the names that payloads leave out.
	Names Names
	// Settings returns the settings of a channel: its own, else its parent's, else the
	// workspace's. The parent may be empty.
	Settings func(channel, parent string) Settings
	// AsksAboutStrangers says that the policy asks about strangers, at least in one channel.
	AsksAboutStrangers bool
	// Introduce reads our identity from a payload, and completes the known one. Its
	// envelope has the Parsed of Keys. It is nil if no payload contains our identity. If it
	// is not nil, no event is recorded before our user is known.
	Introduce func(envelope event.Envelope, known event.Self) event.Self
	// Facts replace the store's facts during a replay; then no envelope waits for our
	// identity. Otherwise nil.
	Facts adapters.Facts
	// Backfill knows where messages may be missing; nil if missed messages cannot be read.
	Backfill Backfill
	// Context reads a thread's earlier messages; nil if the adapter cannot.
	Context adapters.ContextReader
	// Groups returns the groups of a user, at least those that the settings name; nil if they name none.
	Groups func(ctx context.Context, user string) []string
	// Quoted reads the messages that others answer; nil if the adapter cannot or need not.
	Quoted adapters.QuotedReader
}

// Names is the part of a directory that may ask the platform.
type Names interface {
	User(ctx context.Context, id string) (adapters.User, bool)
}

// workspace is a Workspace with its memory.
type workspace struct {
	config    Workspace
	strangers *Strangers
	*memory
}

// scope identifies a workspace: in a recording, two platforms may share an id.
type scope struct {
	platform event.Platform
	id       string
}

// Self returns our identity, from the recording or the store.
func (w *workspace) Self() event.Self {
	if w.config.Facts != nil {
		return w.config.Facts.Self()
	}
	return *w.self.Load()
}

// Self returns the identity of a workspace; nothing for an unknown one.
func (in *Ingest) Self(platform event.Platform, workspace string) event.Self {
	if w := in.workspace(platform, workspace); w != nil {
		return w.Self()
	}
	return event.Self{}
}

// unintroduced reports whether the platform of a live workspace has not confirmed our identity
// yet. Until then any event may be another team's.
func (w *workspace) unintroduced() bool {
	return w.config.Facts == nil && w.config.Introduce != nil && w.Self().UserID == ""
}

// ownID is our own sender_id in the workspace. It is empty until our identity is known.
func (w *workspace) ownID() string {
	if id := w.Self().UserID; id != "" {
		return w.config.Senders + ":" + id
	}
	return ""
}

// directory serves a normaliser while it reads one envelope.
type directory struct {
	*workspace
	Names
	state  threads.AdapterState
	stored func(channel string) (event.ChannelType, error)
	err    error // error of the store: the answers may be wrong
}

var _ adapters.Directory = (*directory)(nil)

func (in *Ingest) directory(ctx context.Context, w *workspace) *directory {
	return &directory{workspace: w, Names: w.config.Names, state: in.Journal.Threads.AdapterState(w.config.ID), stored: func(channel string) (event.ChannelType, error) {
		return in.Journal.Threads.ChannelType(ctx, w.config.ID, channel)
	}}
}

// State implements adapters.Directory.
func (d *directory) State() adapters.State { return d.state }

// ChannelType implements adapters.Facts. It reads the store if the type is not in memory.
func (d *directory) ChannelType(channel string) event.ChannelType {
	if d.config.Facts != nil {
		if told := d.config.Facts.ChannelType(channel); told != event.ChannelUnknown {
			return told
		}
	}
	kind, known := d.recall(channel)
	if known || d.err != nil {
		return kind
	}
	if kind, d.err = d.stored(channel); d.err == nil {
		d.remember(event.Channel{ID: channel, Type: kind})
	}
	return kind
}

// memory outlives a reload of the configuration.
type memory struct {
	self  atomic.Pointer[event.Self] // as stored
	waits atomic.Bool                // an envelope waits for our identity
	since time.Time                  // when this process began with the workspace
	rest  adapters.Rest              // of reads of earlier messages

	mu       sync.Mutex
	channels map[string]knownType // of recent channels
}

// knownType is a channel's type and the time at which it was learnt.
type knownType struct {
	event.ChannelType
	at time.Time
}

const (
	// channelLimit bounds the channels whose type is kept in memory.
	channelLimit = 10_000
	// unknownFor is how long a channel's type counts as unknown before the store is
	// asked again: another node may learn it at any time.
	unknownFor = time.Second
)

func (m *memory) recall(channel string) (kind event.ChannelType, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	learnt, known := m.channels[channel]
	if learnt.ChannelType == event.ChannelUnknown && time.Since(learnt.at) >= unknownFor {
		known = false
	}
	return learnt.ChannelType, known
}

func (m *memory) remember(channel event.Channel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.channels) >= channelLimit {
		clear(m.channels)
	}
	m.channels[channel.ID] = knownType{channel.Type, time.Now()}
}

// news reports whether a payload contains a channel's type for the first time.
func (m *memory) news(channel event.Channel) bool {
	known, _ := m.recall(channel.ID)
	return channel.ID != "" && channel.Type != event.ChannelUnknown && channel.Type != known
}

// SetSelf stores our identity in a workspace. Envelopes that waited for it are worked on
// at once.
func (in *Ingest) SetSelf(ctx context.Context, platform event.Platform, workspace string, self event.Self) error {
	w := in.workspace(platform, workspace)
	if w == nil {
		return nil
	}
	return in.setSelf(ctx, w, self)
}

func (in *Ingest) setSelf(ctx context.Context, w *workspace, self event.Self) error {
	if w.config.Facts != nil {
		return nil
	}
	for isNew := *w.self.Load() != self; w.waits.Swap(false) || isNew; isNew = false {
		if err := in.Journal.Envelopes.SetSelf(ctx, w.config.ID, self); err != nil {
			return fmt.Errorf("store our identity in %s: %w", w.config.ID, err)
		}
		w.self.Store(&self)
		in.Work.WakeAt(work.Intake, "", in.Now())
	}
	return nil
}

// readSelf reads our identity from the store, because another node may have stored it.
func (in *Ingest) readSelf(ctx context.Context, w *workspace) error {
	before := w.self.Load()
	self, err := in.Journal.Threads.Self(ctx, w.config.ID)
	if err != nil {
		return fmt.Errorf("read our identity in %s: %w", w.config.ID, err)
	}
	w.self.CompareAndSwap(before, &self) // unless this node has stored another one meanwhile
	return nil
}
