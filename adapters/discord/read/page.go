package read

import (
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/payload"
	"parley/ingest/wake"
)

// historyPage is the number of messages that one call reads, Discord's maximum.
// https://docs.discord.com/developers/resources/message#get-channel-messages
const historyPage = 100

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

// page reads one page of a channel, in Discord's order. It waits for the pace of the route; until
// urgent is closed, it leaves a fifth of the calls to others.
func (r *Reader) page(ctx context.Context, channel string, query url.Values, urgent <-chan struct{}) ([]historyMessage, error) {
	name := "GET channels " + channel + " messages"
	for {
		select {
		case <-time.After(r.client.Paces.Scarce(name, r.client.Now())):
		case <-urgent:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		list, _, err := r.messages(ctx, channel, query)
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
func (r *Reader) messages(ctx context.Context, channel string, query url.Values) (list []historyMessage, full bool, err error) {
	if !query.Has("limit") {
		query.Set("limit", strconv.Itoa(historyPage))
	}
	var raw []json.RawMessage
	err = r.client.Get(ctx, "/channels/"+channel+"/messages?"+query.Encode(), &raw)
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
func (r *Reader) eachMessage(ctx context.Context, channel string, since time.Time, visit func(historyMessage) bool) error {
	for after := payload.IDAt(since); ; {
		page, full, err := r.messages(ctx, channel, url.Values{"after": {after}})
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
