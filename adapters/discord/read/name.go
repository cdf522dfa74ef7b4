package read

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/memory"
	"parley/ingest/event"
)

// LookupUser returns a user's name. The id "<server>/<user>" asks for the name in that server:
// the nickname, else the display name, else the user name.
func (r *Reader) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	var member struct {
		User discordgo.User
		Nick string
	}
	path, answer := "/users/"+id, any(&member.User)
	if guild, user, inGuild := strings.Cut(id, "/"); inGuild {
		path, answer = "/guilds/"+guild+"/members/"+user, &member
	}
	err := r.client.Get(ctx, path, answer)
	switch code := call.Code(err); {
	case code == discordgo.ErrCodeUnknownMember || code == discordgo.ErrCodeUnknownUser: // such as one who has left the server
		return adapters.User{}, fmt.Errorf("look up discord user %s: %w: %w", id, err, adapters.ErrNoName)
	case err != nil:
		return adapters.User{}, fmt.Errorf("look up discord user %s: %w", id, err)
	}
	u := member.User
	return adapters.User{DisplayName: event.Text(cmp.Or(member.Nick, u.GlobalName, u.Username)), IsBot: u.Bot || u.System}, nil
}

// LookupMention returns the name of a role or a channel of the server of the channel in. It asks the memory
// of this node's servers, not Discord.
func (r *Reader) LookupMention(_ context.Context, in, token string) (string, error) {
	if name := r.memory.Servers.NameOf(in, token); name != "" {
		return event.Text(name), nil
	}
	return "", fmt.Errorf("look up %s of discord channel %s: %w", token, in, adapters.ErrNoName)
}

// KnownPlace returns the names of a channel's place, if a shard of this node reports the channel.
func (r *Reader) KnownPlace(channel string) (event.Place, bool) {
	return r.memory.Servers.PlaceOf(channel)
}

// LookupPlace asks Discord for a channel that no shard of this node reports, such as a thread that was archived. Direct messages
// have no names.
func (r *Reader) LookupPlace(ctx context.Context, channel string) (event.Place, error) {
	c, err := r.channel(ctx, channel)
	if err != nil {
		return event.Place{}, err
	}
	if c.GuildID == "" {
		return event.Place{}, fmt.Errorf("look up discord channel %s: %w", channel, adapters.ErrNoName)
	}
	if !c.IsThread() {
		return memory.PlaceIn("", c, nil), nil
	}
	if above, known := r.KnownPlace(c.ParentID); known {
		above.Thread = event.Text(c.Name)
		return above, nil
	}
	parent, err := r.channel(ctx, c.ParentID)
	if err != nil {
		return event.Place{}, err
	}
	return memory.PlaceIn("", c, parent), nil
}
