package read

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/adapters/discord/payload"
	"parley/ingest/event"
)

const (
	// channelBytes bounds the messages that are read from one channel, in bytes.
	channelBytes = 64 << 20
	// maxThread bounds the messages that are read from one thread.
	maxThread = 10_000
)

// HistoryLag implements adapters.SlowHistory.
func (r *Reader) HistoryLag() time.Duration { return memory.HistoryLag }

// Began returns the channel of a thread and the time of its creation.
func (r *Reader) Began(thread event.ThreadKey) (channel string, at time.Time, ok bool) {
	to, err := payload.AddressOf(r.workspace, thread, "")
	return to.Channel, payload.TimeOf(to.Channel), err == nil
}

// ReadThread reads the thread's channel. A question's own thread that is not open yet has missed nothing.
func (r *Reader) ReadThread(ctx context.Context, thread event.ThreadKey, read adapters.Reading) error {
	to, err := payload.AddressOf(r.workspace, thread, "")
	if err != nil {
		return err
	}
	read.Gap.Channel, read.Messages = to.Channel, maxThread
	if _, err = r.ReadChannel(ctx, read); call.Code(err) == discordgo.ErrCodeUnknownChannel {
		return nil
	}
	return err
}

// ReadChannel reads a channel from the end of the gap back to its beginning, or back to the last
// message that this process has accepted without a gap. Every channel is one thread, and its
// threads are channels of their own. It skips our own messages.
func (r *Reader) ReadChannel(ctx context.Context, read adapters.Reading) (found adapters.Found, err error) {
	channel := read.Gap.Channel
	self, err := r.knownSelf(ctx)
	if err != nil {
		return found, err
	}
	guild, parent, err := r.placeOf(ctx, channel)
	if err != nil {
		return found, markUnreadable(err)
	}
	read.Gap.From = r.memory.Servers.SeenFrom(channel, parent, read.Gap.From)
	begun, lacks := r.client.Now(), r.memory.Coverage.Missing(channel)
	list, newest, cut, err := r.readBack(ctx, read, self, lacks)
	if err != nil {
		return found, markUnreadable(err)
	}
	if err := r.handOver(ctx, read, guild, parent, list); err != nil {
		return found, err
	}
	r.memory.Coverage.Filled(channel, lacks, begun, read.Gap.Until, newest)
	return adapters.Found{Cut: cut}, nil
}

// readBack returns the messages of a gap that may be missing, oldest first, and the id of the
// newest message that it has seen.
func (r *Reader) readBack(ctx context.Context, read adapters.Reading, self string, lacks memory.Missing) (list []historyMessage, newest string, cut bool, err error) {
	size, before := 0, payload.IDAt(read.Gap.Until.Add(time.Millisecond))
	if lacks.Before != "" && payload.CompareIDs(lacks.Before, before) < 0 {
		before = lacks.Before
	}
	for more := true; more; {
		page, err := r.page(ctx, read.Gap.Channel, url.Values{"before": {before}}, read.Urgent)
		if err != nil {
			return nil, "", false, err
		}
		more = len(page) == historyPage
		for _, m := range page {
			before, newest = m.ID, payload.Later(newest, m.ID)
			isKnown := lacks.After != "" && payload.CompareIDs(m.ID, lacks.After) < 0
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
func (r *Reader) handOver(ctx context.Context, read adapters.Reading, guild, parent string, list []historyMessage) error {
	var missed []adapters.Missed
	for _, m := range list {
		d := m.live(guild, r.nick(ctx, guild, m))
		one := adapters.Missed{New: r.envelope("MESSAGE_CREATE", event.Backfilled, parent, d)}
		if m.Edited != "" {
			one.Change = r.envelope("MESSAGE_UPDATE", event.Backfilled, parent, d)
		}
		missed = append(missed, one)
	}
	return read.Hand(payload.ThreadKey(r.workspace, read.Gap.Channel), missed)
}

// nick returns the name of a message's author in the server, because fetched messages have no
// nicknames. A failed lookup is no error: the message then has the author's other name.
func (r *Reader) nick(ctx context.Context, guild string, m historyMessage) string {
	if guild == "" || m.Webhook != "" || !payload.IsID(m.Author.ID) {
		return ""
	}
	member, _ := r.names.User(ctx, guild+"/"+m.Author.ID)
	return member.DisplayName
}

// envelope returns a message as an event of the gateway. parent is the channel of the message's
// thread; empty for none.
func (r *Reader) envelope(name, transport, parent string, d json.RawMessage) *event.Envelope {
	body := []byte(`{"op":0,"t":"` + name + `","s":null,"d":` + string(d) + `}`)
	if parent != "" {
		body = payload.WithMember(body, "parent_id", parent)
	}
	return &event.Envelope{Workspace: r.workspace, Platform: event.Discord, Transport: transport, ReceivedAt: r.client.Now(), Body: body}
}

// markUnreadable marks a refusal to read a channel that only the operator can fix. It does not
// mark a refusal of the token, because the messages can be read with another one.
func markUnreadable(err error) error {
	switch call.Status(err) {
	case 0, http.StatusUnauthorized:
		return err
	}
	return &adapters.RefusedError{Err: err, Hint: inviteToRead}
}

const inviteToRead = "give the bot the permissions View Channel and Read Message History in the channel, if it should take part there"
