package live

import (
	"context"
	"encoding/json"
	"strings"

	"parley/adapters/discord/memory"
)

// isGuildEvent reports whether an event only changes the memory of servers.
func isGuildEvent(name string) bool {
	return strings.HasPrefix(name, "GUILD_") || strings.HasPrefix(name, "CHANNEL_") || strings.HasPrefix(name, "THREAD_")
}

// learnGuild applies an event about a server, a channel or a thread, and stores the result if
// backfill or mentions need it later.
func (a *accepts) learnGuild(ctx context.Context, r received) error {
	var place struct {
		ID          string `json:"id"`
		GuildID     string `json:"guild_id"`
		Unavailable bool   `json:"unavailable"`
	}
	if json.Unmarshal(r.data, &place) != nil {
		return nil // the memory stays as it is
	}
	if place.Unavailable { // by an outage; the bot has neither joined nor left the server
		a.memory.Servers.Await(place.ID, a.id)
		return nil
	}
	if strings.HasPrefix(r.name, "GUILD_CREATE") {
		place.GuildID = place.ID
		before, first, err := memory.StoredServer(ctx, a.memory.State, place.ID)
		if err != nil {
			return err
		}
		a.memory.Servers.Arrive(r.data, before, first, a.client.Now())
	} else {
		a.memory.Servers.Apply(r.name, place.ID, r.data)
	}
	return a.memory.Servers.Store(ctx, place.GuildID, a.memory.State, a.client.Now())
}
