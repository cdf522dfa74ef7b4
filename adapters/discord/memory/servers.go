package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

// Servers are the servers of this node's shards, as the gateway reports them.
type Servers struct {
	mu      sync.Mutex
	own     event.Self
	known   map[string]*guild
	pending map[string]int // the shards of the servers that a new session has announced, or that are unavailable
	direct  map[string]bool
	fresh   map[string]time.Time // when the bot began to see a channel, of the channels that it did not always see
	changed chan struct{}        // closed and replaced when a server arrives
}

func newServers() *Servers {
	return &Servers{known: map[string]*guild{}, pending: map[string]int{}, direct: map[string]bool{}, fresh: map[string]time.Time{}, changed: make(chan struct{})}
}

// guild is a server with its channels.
type guild struct {
	*discordgo.Guild
	roles    []string                      // the bot's
	channels map[string]*discordgo.Channel // with the active threads
	stored   string                        // the value of the server in the state
}

// directName is the name of the channels of direct messages in the state.
const directName = "direct"

// maxDirect bounds the channels of direct messages that are known in memory.
const maxDirect = 2000

// Begin notes a new session of a shard: its servers arrive next.
func (g *Servers) Begin(shard int, self event.Self, announced []discordgo.Guild) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = self
	maps.DeleteFunc(g.pending, func(_ string, of int) bool { return of == shard })
	for i := range announced {
		delete(g.known, announced[i].ID)
		g.pending[announced[i].ID] = shard
	}
}

// Await notes that a server of a shard is unavailable: it arrives later.
func (g *Servers) Await(id string, shard int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.known, id)
	g.pending[id] = shard
}

// Self is our identity in the last session.
func (g *Servers) Self() event.Self {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.own
}

// Complete waits until the announced servers have arrived, or until none has arrived for a limited
// time: many servers take longer, and a server may be unavailable for hours. It returns the others.
func (g *Servers) Complete(ctx context.Context, limit time.Duration) (others []string) {
	for {
		g.mu.Lock()
		others, changed := slices.Sorted(maps.Keys(g.pending)), g.changed
		g.mu.Unlock()
		if len(others) == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-time.After(limit):
			return others
		case <-ctx.Done():
			return others
		}
	}
}

// startedName is the name in the state of the note that some server is known.
const startedName = "started"

// StoredServer returns the value of a server in the state. first says that the state knows no server at all.
func StoredServer(ctx context.Context, state adapters.State, id string) (value string, first bool, err error) {
	value, err = state.Get(ctx, payload.ServerStateName(id))
	started, err2 := state.Get(ctx, startedName)
	if err = cmp.Or(err, err2); err != nil {
		return "", false, fmt.Errorf("read the known channels: %w", err)
	}
	return value, started == "", nil
}

// DirectChannels returns the known channels of direct messages.
func DirectChannels(ctx context.Context, state adapters.State) ([]string, error) {
	return adapters.GetList[string](ctx, state, directName)
}

// Arrive adds a server. before is its value in the state, and first says that the state knows no
// server at all.
func (g *Servers) Arrive(data []byte, before string, first bool, now time.Time) {
	next := &guild{Guild: new(discordgo.Guild), channels: map[string]*discordgo.Channel{}}
	if json.Unmarshal(data, next.Guild) != nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range slices.Concat(next.Channels, next.Threads) {
		next.channels[c.ID] = c
	}
	for _, m := range next.Members {
		if m.User != nil && m.User.ID == g.own.UserID {
			next.roles = m.Roles
		}
	}
	next.Channels, next.Threads, next.Members, next.Presences, next.Emojis, next.Stickers = nil, nil, nil, nil, nil, nil
	next.stored = before
	if before != "" || !first {
		g.refresh(next, payload.ReadServer(before).Channels, now)
	}
	g.known[next.ID] = next
	delete(g.pending, next.ID)
	close(g.changed)
	g.changed = make(chan struct{})
}

// Apply applies an event about a known server. id is the id of the event's object.
func (g *Servers) Apply(name, id string, data []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if name == "GUILD_DELETE" {
		delete(g.known, id)
		delete(g.pending, id)
		return
	}
	var d struct {
		GuildID string          `json:"guild_id"`
		Role    *discordgo.Role `json:"role"`
		RoleID  string          `json:"role_id"`
		Roles   []string        `json:"roles"` // of a member
		User    struct {
			ID string `json:"id"`
		} `json:"user"`
		// Threads are those of channels that the bot has begun to see.
		Threads []json.RawMessage `json:"threads"`
	}
	_ = json.Unmarshal(data, &d)
	known := g.known[d.GuildID]
	switch {
	case known == nil:
	case strings.HasPrefix(name, "GUILD_ROLE_"):
		known.Roles = slices.DeleteFunc(known.Roles, func(r *discordgo.Role) bool { return r.ID == d.RoleID || d.Role != nil && r.ID == d.Role.ID })
		if d.Role != nil {
			known.Roles = append(known.Roles, d.Role)
		}
	case name == "GUILD_MEMBER_UPDATE" && d.User.ID == g.own.UserID: // needs no intent
		known.roles = d.Roles
	case name == "CHANNEL_DELETE", name == "THREAD_DELETE":
		delete(known.channels, id)
	case name == "CHANNEL_CREATE", name == "CHANNEL_UPDATE", name == "THREAD_CREATE", name == "THREAD_UPDATE":
		known.set(data)
	case name == "THREAD_LIST_SYNC":
		for _, thread := range d.Threads {
			known.set(thread)
		}
	}
}

// set stores the channel of an event.
func (g *guild) set(data []byte) {
	c := new(discordgo.Channel)
	if json.Unmarshal(data, c) == nil && c.ID != "" {
		g.channels[c.ID] = c
	}
}

// Store stores the visible channels of a server, and the bot's role, if they have changed.
func (g *Servers) Store(ctx context.Context, id string, state adapters.State, now time.Time) error {
	g.mu.Lock()
	known := g.known[id]
	if known == nil {
		g.mu.Unlock()
		return nil
	}
	raw, _ := json.Marshal(payload.Server{Role: known.ownRole(), Channels: known.visible(g.own.UserID)}) // strings always encode
	value, changed := string(raw), string(raw) != known.stored
	if changed && known.stored != "" {
		g.refresh(known, payload.ReadServer(known.stored).Channels, now)
	}
	g.mu.Unlock()
	if !changed {
		return nil
	}
	err := state.Put(ctx, payload.ServerStateName(id), value)
	if err == nil {
		err = state.Put(ctx, startedName, "yes")
	}
	if err != nil {
		return fmt.Errorf("store the known channels: %w", err)
	}
	g.mu.Lock()
	known.stored = value
	g.mu.Unlock()
	return nil
}

// refresh notes the visible channels of a server that are not among the known ones. The caller
// holds the lock.
func (g *Servers) refresh(of *guild, known []string, now time.Time) {
	if len(g.fresh) > maxFresh {
		clear(g.fresh)
	}
	for _, id := range of.visible(g.own.UserID) {
		if _, noted := g.fresh[id]; !noted && !slices.Contains(known, id) {
			g.fresh[id] = now
		}
	}
}

// maxFresh bounds the channels whose time is remembered.
const maxFresh = 10_000

// SeenFrom returns the time from which the messages of a channel, or of a thread of the channel
// parent, were for the bot, if that is later than from: nothing was missed in a channel before the
// bot began to see it. All messages of a channel that was made after from were for the bot.
func (g *Servers) SeenFrom(channel, parent string, from time.Time) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	id := cmp.Or(parent, channel)
	if at := g.fresh[id]; at.After(from) && payload.TimeOf(id).Before(from) {
		return at
	}
	return from
}

// ownRole returns the role that Discord made for the bot; empty if there is none.
func (g *guild) ownRole() string {
	for _, id := range g.roles {
		for _, r := range g.Roles {
			if r.ID == id && r.Managed {
				return id
			}
		}
	}
	return ""
}

// maxVisible bounds the remembered channels of a server, so that they fit into one value.
const maxVisible = 2500

// visible returns the channels with messages that the bot may read, sorted, without threads.
func (g *guild) visible(user string) (ids []string) {
	for id, c := range g.channels {
		if !c.IsThread() && hasMessages(c.Type) && g.permissions(c, user)&readPermissions == readPermissions {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(len(ids), maxVisible)]
}

// hasMessages reports whether a channel of the type, or its threads, have messages.
func hasMessages(t discordgo.ChannelType) bool {
	return t != discordgo.ChannelTypeGuildCategory && t != discordgo.ChannelTypeGuildStore
}

// holdsMessages reports whether a channel of the type has messages itself. A forum has only
// threads.
func holdsMessages(t discordgo.ChannelType) bool {
	return hasMessages(t) && t != discordgo.ChannelTypeGuildForum && t != discordgo.ChannelTypeGuildMedia
}

// Missed returns the channels and active threads in which messages may have been missed.
func (g *Servers) Missed() (ids []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.known {
		seen := map[string]bool{}
		for _, id := range known.visible(g.own.UserID) {
			if seen[id] = true; holdsMessages(known.channels[id].Type) {
				ids = append(ids, id)
			}
		}
		for id, c := range known.channels {
			if c.IsThread() && seen[c.ParentID] {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return ids
}

// Place returns the server of a channel, and the channel; nil for an unknown one.
func (g *Servers) Place(channel string) (guildID string, c *discordgo.Channel) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, known := range g.known {
		if c := known.channels[channel]; c != nil {
			return id, c
		}
	}
	return "", nil
}

// NameOf returns the name behind the token of a role or a channel of the server of the channel in; empty if
// there is none that everybody in that channel may know.
func (g *Servers) NameOf(in, token string) string {
	kind, id := payload.PlaceMention(token)
	if kind == "" {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.known {
		place, c := known.channels[in], known.channels[id]
		switch {
		case place == nil:
		case kind == "#" && c != nil && known.mayName(place, c):
			return c.Name
		case kind == "@&":
			for _, r := range known.Roles {
				if r.ID == id {
					return r.Name
				}
			}
		}
	}
	return ""
}

// PlaceOf returns the present names of a channel's place, or false for an unknown channel.
func (g *Servers) PlaceOf(channel string) (event.Place, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, known := range g.known {
		c := known.channels[channel]
		if c == nil {
			continue
		}
		parent := known.channels[c.ParentID]
		return PlaceIn(known.Name, c, parent), !c.IsThread() || parent != nil
	}
	return event.Place{}, false
}

// PlaceIn returns the names of the place of a channel of a server. parent is the channel of a thread.
func PlaceIn(server string, c, parent *discordgo.Channel) event.Place {
	place := event.Place{Workspace: event.Text(server)}
	if c.IsThread() {
		place.Thread, c = event.Text(c.Name), parent
	}
	if c != nil {
		place.Channel, place.Topic = event.Text(c.Name), event.Text(c.Topic)
	}
	return place
}

// Parent returns the channel of a thread; empty if the channel is no thread that is known.
func (g *Servers) Parent(guild, channel string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := g.known[guild]; known != nil {
		if c := known.channels[channel]; c != nil && c.IsThread() {
			return c.ParentID
		}
	}
	return ""
}

// RememberDirect stores a channel of direct messages, because Discord does not list them.
func (g *Servers) RememberDirect(ctx context.Context, state adapters.State, channel string) error {
	g.mu.Lock()
	known := g.direct[channel]
	g.mu.Unlock()
	if known {
		return nil
	}
	err := adapters.UpdateList(ctx, state, directName, func(list []string) []string {
		return append(slices.DeleteFunc(list, func(id string) bool { return id == channel }), channel)
	})
	if err != nil {
		return fmt.Errorf("store a channel of direct messages: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.direct) > maxDirect {
		clear(g.direct)
	}
	g.direct[channel] = true
	return nil
}

// WithRoles returns the ids of the servers that have one of some roles, in order.
func (g *Servers) WithRoles(ids []string) (servers []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for id, known := range g.known {
		if slices.ContainsFunc(known.Roles, func(r *discordgo.Role) bool { return slices.Contains(ids, r.ID) }) {
			servers = append(servers, id)
		}
	}
	slices.Sort(servers)
	return servers
}
