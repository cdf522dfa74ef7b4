package read

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
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
