package read

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/memory"
	"parley/adapters/discord/payload"
)

// Channels returns the channels in which messages may have been missed: those that the bot sees,
// with their active threads, and the known direct messages. Channels asks Discord for the bot's
// servers first, and for the threads of a server that has not arrived; they are unknown while the
// server is unavailable.
func (r *Reader) Channels(ctx context.Context) ([]string, error) {
	absent := r.memory.Servers.Complete(ctx, r.ServersWait)
	if err := r.client.Get(ctx, "/users/@me/guilds?limit=1", new(json.RawMessage)); err != nil {
		return nil, fmt.Errorf("ask discord for the bot's servers: %w", err)
	}
	direct, err := memory.DirectChannels(ctx, r.memory.State)
	if err != nil {
		return nil, fmt.Errorf("read the known direct messages: %w", err)
	}
	channels := append(r.memory.Servers.Missed(), direct...)
	for _, id := range absent {
		value, err := r.memory.State.Get(ctx, payload.ServerStateName(id))
		if err != nil {
			return nil, fmt.Errorf("read the known channels: %w", err)
		}
		known := payload.ReadServer(value)
		threads, err := r.activeThreads(ctx, id, known.Channels)
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
func (r *Reader) activeThreads(ctx context.Context, guild string, channels []string) (ids []string, err error) {
	if len(channels) == 0 {
		return nil, nil
	}
	var answer struct {
		Threads []discordgo.Channel `json:"threads"`
	}
	err = r.client.Get(ctx, "/guilds/"+guild+"/threads/active", &answer)
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

// knownSelf returns our user id. It asks Discord if there was no session yet.
func (r *Reader) knownSelf(ctx context.Context) (string, error) {
	if id := r.memory.Servers.Self().UserID; id != "" {
		return id, nil
	}
	var user discordgo.User
	if err := r.client.Get(ctx, "/users/@me", &user); err != nil {
		return "", fmt.Errorf("ask discord who we are: %w", err)
	}
	if user.ID == "" {
		return "", errors.New("ask discord who we are: the answer has no user id")
	}
	return user.ID, nil
}

// placeOf returns the server of a channel, which is empty for direct messages, and the channel of
// a thread. It asks Discord about a channel of another node's servers.
func (r *Reader) placeOf(ctx context.Context, channel string) (guild, parent string, err error) {
	guild, c := r.memory.Servers.Place(channel)
	if c == nil {
		if c, err = r.channel(ctx, channel); err != nil {
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
func (r *Reader) channel(ctx context.Context, id string) (*discordgo.Channel, error) {
	c := new(discordgo.Channel)
	if err := r.client.Get(ctx, "/channels/"+id, c); err != nil {
		return nil, fmt.Errorf("look up discord channel %s: %w", id, err)
	}
	return c, nil
}
