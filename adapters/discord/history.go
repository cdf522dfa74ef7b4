package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
	"parley/ingest/wake"
)

const (
	// historyPage is the number of messages that one call reads, Discord's maximum.
	// https://docs.discord.com/developers/resources/message#get-channel-messages
	historyPage = 100
	// channelBytes bounds the messages that are read from one channel, in bytes.
	channelBytes = 64 << 20
	// maxThread bounds the messages that are read from one thread.
	maxThread = 10_000
	// historyLag is the time after which the history shows every message, and the gateway has named
	// every server of a new session.
	historyLag = 5 * time.Second
	// clockSkew is the maximum time by which Discord's clock may be behind ours.
	clockSkew = time.Second
)

// Channels returns the channels in which messages may have been missed: those that the bot sees,
// with their active threads, and the known direct messages. Channels asks Discord for the bot's
// servers first, and for the threads of a server that has not arrived; they are unknown while the
// server is unavailable.
func (a *Adapter) Channels(ctx context.Context) ([]string, error) {
	absent := a.guilds.complete(ctx, a.limits.guilds)
	if err := a.get(ctx, "/users/@me/guilds?limit=1", new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("ask discord for the bot's servers: %w", err)
	}
	direct, err := adapters.GetList[string](ctx, a.state, directName)
	if err != nil {
		return nil, fmt.Errorf("read the known direct messages: %w", err)
	}
	channels := append(a.guilds.missed(), direct...)
	for _, id := range absent {
		value, err := a.state.Get(ctx, payload.ServerStateName(id))
		if err != nil {
			return nil, fmt.Errorf("read the known channels: %w", err)
		}
		known := payload.ReadServer(value)
		threads, err := a.activeThreads(ctx, id, known.Channels)
		if err != nil {
			return nil, err
		}
		channels = append(append(channels, known.Channels...), threads...)
	}
	return channels, nil
}

// activeThreads returns the active threads of some channels of a server; none if Discord refuses
// the call or the server is unavailable.
// https://docs.discord.com/developers/resources/guild#list-active-guild-threads
func (a *Adapter) activeThreads(ctx context.Context, guild string, channels []string) (ids []string, err error) {
	if len(channels) == 0 {
		return nil, nil
	}
	var answer struct {
		Threads []discordgo.Channel `json:"threads"`
	}
	err = a.get(ctx, "/guilds/"+guild+"/threads/active", &answer)
	if _, limited := adapters.RetryAfter(err); limited || ctx.Err() != nil {
		return nil, fmt.Errorf("ask discord for the threads of server %s: %w", guild, err)
	}
	for i := range answer.Threads {
		if c := &answer.Threads[i]; slices.Contains(channels, c.ParentID) {
			ids = append(ids, c.ID)
		}
	}
	return ids, nil
}

// HistoryLag implements adapters.SlowHistory.
func (a *Adapter) HistoryLag() time.Duration { return historyLag }

// Began returns the channel of a thread and the time of its creation.
func (a *Adapter) Began(thread event.ThreadKey) (channel string, at time.Time, ok bool) {
	to, err := a.Address(thread, "")
	return to.Channel, payload.TimeOf(to.Channel), err == nil
}

// ReadThread reads the thread's channel.
func (a *Adapter) ReadThread(ctx context.Context, thread event.ThreadKey, read adapters.Reading) error {
	to, err := a.Address(thread, "")
	if err != nil {
		return err
	}
	read.Gap.Channel, read.Messages = to.Channel, maxThread
	_, err = a.ReadChannel(ctx, read)
	return err
}

// ReadChannel reads a channel from the end of the gap back to its beginning, or back to the last
// message that this process has accepted without a gap. Every channel is one thread, and its
// threads are channels of their own. It skips our own messages.
func (a *Adapter) ReadChannel(ctx context.Context, read adapters.Reading) (found adapters.Found, err error) {
	channel := read.Gap.Channel
	self, err := a.knownSelf(ctx)
	if err != nil {
		return found, err
	}
	guild, parent, err := a.placeOf(ctx, channel)
	if err != nil {
		return found, markUnreadable(err)
	}
	read.Gap.From = a.guilds.seenFrom(channel, parent, read.Gap.From)
	begun, lacks := a.now(), a.coverage.missing(channel)
	list, newest, cut, err := a.readBack(ctx, read, self, lacks)
	if err != nil {
		return found, markUnreadable(err)
	}
	if err := a.handOver(ctx, read, guild, parent, list); err != nil {
		return found, err
	}
	a.coverage.filled(channel, lacks, begun, read.Gap.Until, newest)
	return adapters.Found{Cut: cut}, nil
}

// readBack returns the messages of a gap that may be missing, oldest first, and the id of the
// newest message that it has seen.
func (a *Adapter) readBack(ctx context.Context, read adapters.Reading, self string, lacks missing) (list []historyMessage, newest string, cut bool, err error) {
	size, before := 0, payload.IDAt(read.Gap.Until.Add(time.Millisecond))
	if lacks.before != "" && payload.CompareIDs(lacks.before, before) < 0 {
		before = lacks.before
	}
	for more := true; more; {
		page, err := a.page(ctx, read.Gap.Channel, url.Values{"before": {before}}, read.Urgent)
		if err != nil {
			return nil, "", false, err
		}
		more = len(page) == historyPage
		for _, m := range page {
			before, newest = m.ID, payload.Later(newest, m.ID)
			isKnown := lacks.after != "" && payload.CompareIDs(m.ID, lacks.after) < 0
			if isKnown || payload.TimeOf(m.ID).Before(read.Gap.From.Truncate(time.Millisecond)) {
				more = false
				break
			}
			if m.Author.ID == self {
				continue
			}
			if len(list) == read.Messages || size > channelBytes {
				cut, more = true, false
				break
			}
			list, size = append(list, m), size+len(m.raw)
		}
	}
	slices.Reverse(list)
	return list, newest, cut, nil
}

// handOver hands messages over, oldest first, as the events of a live connection.
func (a *Adapter) handOver(ctx context.Context, read adapters.Reading, guild, parent string, list []historyMessage) error {
	var missed []adapters.Missed
	for _, m := range list {
		d := m.live(guild, a.nick(ctx, guild, m))
		one := adapters.Missed{New: a.envelope("MESSAGE_CREATE", event.Backfilled, parent, d)}
		if m.Edited != "" {
			one.Change = a.envelope("MESSAGE_UPDATE", event.Backfilled, parent, d)
		}
		missed = append(missed, one)
	}
	return read.Hand(payload.ThreadKey(a.workspace, read.Gap.Channel), missed)
}

// nick returns the name of a message's author in the server, because fetched messages have no
// nicknames. A failed lookup is no error: the message then has the author's other name.
func (a *Adapter) nick(ctx context.Context, guild string, m historyMessage) string {
	if guild == "" || m.Webhook != "" || !payload.IsID(m.Author.ID) {
		return ""
	}
	member, _ := a.names.User(ctx, guild+"/"+m.Author.ID)
	return member.DisplayName
}

// historyMessage is a fetched message, with the fields that backfill uses.
type historyMessage struct {
	raw         json.RawMessage
	ID          string                `json:"id"`
	Content     string                `json:"content"`
	Edited      string                `json:"edited_timestamp"`
	Webhook     string                `json:"webhook_id"`
	Type        discordgo.MessageType `json:"type"`
	Attachments []json.RawMessage     `json:"attachments"`
	Author      struct {
		ID string `json:"id"`
	} `json:"author"`
}

// live returns the message as the gateway would send it: with its server and its author's
// nickname.
func (m historyMessage) live(guild, nick string) json.RawMessage {
	var fields map[string]json.RawMessage
	if guild == "" || json.Unmarshal(m.raw, &fields) != nil {
		return m.raw
	}
	fields["guild_id"], _ = json.Marshal(guild) // strings always encode
	if m.Webhook == "" {
		fields["member"], _ = json.Marshal(map[string]string{"nick": nick})
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		return m.raw
	}
	return raw
}

// envelope returns a message as an event of the gateway. parent is the channel of the message's
// thread; empty for none.
func (a *Adapter) envelope(name, transport, parent string, d json.RawMessage) *event.Envelope {
	body := []byte(`{"op":0,"t":"` + name + `","s":null,"d":` + string(d) + `}`)
	if parent != "" {
		body = payload.WithMember(body, "parent_id", parent)
	}
	return &event.Envelope{Workspace: a.workspace, Platform: event.Discord, Transport: transport, ReceivedAt: a.now(), Body: body}
}

// page reads one page of a channel, in Discord's order. It waits for the pace of the route; until
// urgent is closed, it leaves a fifth of the calls to others.
func (a *Adapter) page(ctx context.Context, channel string, query url.Values, urgent <-chan struct{}) ([]historyMessage, error) {
	name := "GET channels " + channel + " messages"
	for {
		select {
		case <-time.After(a.paces.scarce(name, a.now())):
		case <-urgent:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		list, _, err := a.messages(ctx, channel, query)
		if after, limited := adapters.RetryAfter(err); limited {
			if !wake.After(ctx, after) {
				return nil, ctx.Err()
			}
			continue
		}
		return list, err
	}
}

// messages calls GET /channels/{channel}/messages. full says that the page is full.
func (a *Adapter) messages(ctx context.Context, channel string, query url.Values) (list []historyMessage, full bool, err error) {
	if !query.Has("limit") {
		query.Set("limit", strconv.Itoa(historyPage))
	}
	var raw []json.RawMessage
	err = a.get(ctx, "/channels/"+channel+"/messages?"+query.Encode(), &raw)
	return decodePage(raw), len(raw) == historyPage, err
}

func decodePage(raw []json.RawMessage) (list []historyMessage) {
	for _, one := range raw {
		m := historyMessage{raw: one}
		if _ = json.Unmarshal(one, &m); payload.IsID(m.ID) { // Normalize reports other faults
			list = append(list, m)
		}
	}
	return list
}

// eachMessage calls visit for the messages of a channel since a time, oldest first, until visit
// returns false. It does not wait for the pace of the route.
func (a *Adapter) eachMessage(ctx context.Context, channel string, since time.Time, visit func(historyMessage) bool) error {
	for after := payload.IDAt(since); ; {
		page, full, err := a.messages(ctx, channel, url.Values{"after": {after}})
		if err != nil {
			return err
		}
		slices.SortFunc(page, func(x, y historyMessage) int { return payload.CompareIDs(x.ID, y.ID) })
		for _, m := range page {
			if !visit(m) {
				return nil
			}
			after = m.ID
		}
		if !full || len(page) == 0 {
			return nil
		}
	}
}

// knownSelf returns our user id. It asks Discord if there was no session yet.
func (a *Adapter) knownSelf(ctx context.Context) (string, error) {
	if id := a.guilds.self().UserID; id != "" {
		return id, nil
	}
	var user discordgo.User
	if err := a.get(ctx, "/users/@me", &user); err != nil {
		return "", fmt.Errorf("ask discord who we are: %w", err)
	}
	if user.ID == "" {
		return "", errors.New("ask discord who we are: the answer has no user id")
	}
	return user.ID, nil
}

// placeOf returns the server of a channel, which is empty for direct messages, and the channel of
// a thread. It asks Discord about a channel of another node's servers.
func (a *Adapter) placeOf(ctx context.Context, channel string) (guild, parent string, err error) {
	guild, c := a.guilds.place(channel)
	if c == nil {
		if c, err = a.channel(ctx, channel); err != nil {
			return "", "", err
		}
		guild = c.GuildID
	}
	if c.IsThread() {
		parent = c.ParentID
	}
	return guild, parent, nil
}

// channel calls GET /channels/{channel}.
func (a *Adapter) channel(ctx context.Context, id string) (*discordgo.Channel, error) {
	c := new(discordgo.Channel)
	if err := a.get(ctx, "/channels/"+id, c); err != nil {
		return nil, fmt.Errorf("look up discord channel %s: %w", id, err)
	}
	return c, nil
}
