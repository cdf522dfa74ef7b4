package ingest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal"
)

// Settings are what holds in one channel.
type Settings struct {
	// Agent is the id of who answers there.
	Agent  string
	Policy Policy
	// Coalesce and CoalesceMax are how long a turn waits for further messages.
	Coalesce, CoalesceMax time.Duration
	// KeepMetadata says that metadata is stored as it was given, without run hints.
	KeepMetadata bool
	// LateAge stands for the policy's MaxAge where a message was caught up with.
	LateAge time.Duration
}

// Workspace is one configured account as ingest sees it.
type Workspace struct {
	ID         string
	Platform   event.Platform
	Normalizer adapters.Normalizer
	// Names answers what payloads leave out.
	Names Names
	// Settings resolves what holds in a channel.
	Settings func(channel string) Settings
	// Introduce reads from a payload who we are, given what is known already;
	// nil where payloads never tell.
	Introduce func(body []byte, known event.Self) event.Self
	// Facts are what a recording tells instead of the store; nothing then waits
	// until we know who we are. Nil in the usual case.
	Facts adapters.Facts
	// Gaps knows what is still to be caught up with; nil where nothing ever is.
	Gaps Gaps
	// Context reads what was said in a thread before; nil where nobody can.
	Context adapters.ContextReader
}

// Names is the part of a directory that may ask the platform.
type Names interface {
	User(ctx context.Context, id string) (adapters.User, bool)
	ChannelName(ctx context.Context, id string) (string, bool)
}

// workspace is a Workspace with what the journal remembers of it.
type workspace struct {
	config Workspace
	*memory
}

// scope tells workspaces apart: in a recording, two platforms may share an id.
type scope struct {
	platform event.Platform
	id       string
}

// Self is who we are, as the recording or the store tells it.
func (w *workspace) Self() event.Self {
	if w.config.Facts != nil {
		return w.config.Facts.Self()
	}
	return w.memory.Self()
}

// ownID is our own sender_id there; empty while nobody has told who we are.
func (w *workspace) ownID() string {
	if id := w.Self().UserID; id != "" {
		return w.config.Platform.Namespace() + ":" + id
	}
	return ""
}

// keys asks the normaliser for an envelope's keys. Where it wants what is not in
// memory, a channel's type or who we are, that is read from the store, and it is
// asked again. The facts that it was given hold for the envelope from then on.
func (w *workspace) keys(ctx context.Context, envelope event.Envelope) (event.Keys, *facts, error) {
	f := &facts{workspace: w}
	keys := w.config.Normalizer.Keys(envelope, f)
	again := false
	if f.missing != "" {
		kind, err := w.journal.ChannelType(ctx, w.id, f.missing)
		if err != nil {
			return keys, f, fmt.Errorf("read a channel's type: %w", err)
		}
		f.read, again = event.Channel{ID: f.missing, Type: kind}, true
		if kind != event.ChannelUnknown { // else another node may be told it any time
			w.remember(f.read)
		}
	}
	if keys.Needs != "" && w.config.Facts == nil {
		news, err := w.reread(ctx)
		if err != nil {
			return keys, f, err
		}
		again = again || news
	}
	if again {
		keys = w.config.Normalizer.Keys(envelope, f)
	}
	return keys, f, nil
}

// facts are a workspace's, as one envelope sees them.
type facts struct {
	*workspace
	read    event.Channel // from the store, for this envelope
	missing string        // the channel whose type is not in memory
}

var _ adapters.Facts = (*facts)(nil)

// ChannelType implements adapters.Facts. It only looks into memory, since it has
// nobody to wait for it; see workspace.keys.
func (f *facts) ChannelType(channel string) event.ChannelType {
	if f.config.Facts != nil {
		if told := f.config.Facts.ChannelType(channel); told != event.ChannelUnknown {
			return told
		}
	}
	if channel == f.read.ID {
		return f.read.Type
	}
	kind, ok := f.recall(channel)
	if !ok {
		f.missing = channel
	}
	return kind
}

// memory outlives a reload of the configuration.
type memory struct {
	id      string
	journal *journal.Journal

	mu       sync.Mutex
	self     event.Self
	channels map[string]event.ChannelType // of the channels met lately
}

// channelLimit bounds the channels whose type is kept in memory.
const channelLimit = 10_000

// Self is who the store says we are.
func (m *memory) Self() event.Self {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.self
}

func (m *memory) recall(channel string) (event.ChannelType, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kind, ok := m.channels[channel]
	return kind, ok
}

func (m *memory) remember(channel event.Channel) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.channels) >= channelLimit {
		clear(m.channels)
	}
	m.channels[channel.ID] = channel.Type
}

// news says whether a payload tells a channel's type for the first time.
func (m *memory) news(channel event.Channel) bool {
	if channel.Type == event.ChannelUnknown || channel.ID == "" {
		return false
	}
	kind, ok := m.recall(channel.ID)
	return !ok || kind != channel.Type
}

// SetSelf remembers who we are in a workspace, for good. What waited to know it
// is worked on at once.
func (in *Ingest) SetSelf(ctx context.Context, platform event.Platform, workspace string, self event.Self) error {
	w := in.workspace(platform, workspace)
	if w == nil {
		return nil
	}
	return in.setSelf(ctx, w, self)
}

func (in *Ingest) setSelf(ctx context.Context, w *workspace, self event.Self) error {
	if w.config.Facts != nil || w.memory.Self() == self {
		return nil
	}
	if err := w.journal.SetSelf(ctx, w.id, self); err != nil {
		return fmt.Errorf("remember who we are in %s: %w", w.id, err)
	}
	w.mu.Lock()
	w.self = self
	w.mu.Unlock()
	in.desk.WakeAt(journal.Intake, "", in.now())
	return nil
}

// reread takes over who the store says we are: another node may have been told.
// It returns whether that was news.
func (m *memory) reread(ctx context.Context) (news bool, err error) {
	before := m.Self()
	self, err := m.journal.Self(ctx, m.id)
	if err != nil {
		return false, fmt.Errorf("read who we are in %s: %w", m.id, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if self == before || m.self != before { // this node was told meanwhile
		return false, nil
	}
	m.self = self
	return true, nil
}

// directory is what a normaliser may ask.
type directory struct {
	*facts
	Names
}

var _ adapters.Directory = directory{}
