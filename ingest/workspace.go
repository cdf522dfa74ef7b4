package ingest

import (
	"context"
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

// Self implements adapters.Facts.
func (w *workspace) Self() event.Self {
	if w.config.Facts != nil {
		return w.config.Facts.Self()
	}
	return w.memory.Self()
}

// ChannelType implements adapters.Facts.
func (w *workspace) ChannelType(channel string) event.ChannelType {
	if w.config.Facts != nil {
		if told := w.config.Facts.ChannelType(channel); told != event.ChannelUnknown {
			return told
		}
	}
	return w.memory.ChannelType(channel)
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

// ChannelType is what payloads have told. What is not in memory is read from the
// store; where that fails, the type is unknown.
func (m *memory) ChannelType(channel string) event.ChannelType {
	if kind, ok := m.recall(channel); ok {
		return kind
	}
	ctx, cancel := context.WithTimeout(context.Background(), acceptTimeout)
	defer cancel()
	kind, err := m.journal.ChannelType(ctx, m.id, channel)
	if err != nil {
		return event.ChannelUnknown
	}
	m.remember(event.Channel{ID: channel, Type: kind})
	return kind
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

// SetSelf remembers who we are in a workspace, for good.
func (in *Ingest) SetSelf(ctx context.Context, platform event.Platform, workspace string, self event.Self) error {
	w := in.workspace(platform, workspace)
	if w == nil {
		return nil
	}
	return w.setSelf(ctx, self)
}

func (w *workspace) setSelf(ctx context.Context, self event.Self) error {
	if w.config.Facts != nil || w.memory.Self() == self {
		return nil
	}
	if err := w.journal.SetSelf(ctx, w.id, self); err != nil {
		return err
	}
	w.mu.Lock()
	w.self = self
	w.mu.Unlock()
	return nil
}

// directory is what a normaliser may ask.
type directory struct {
	*workspace
	Names
}

var _ adapters.Directory = directory{}
