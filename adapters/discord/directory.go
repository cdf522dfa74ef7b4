package discord

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/ingest/event"
)

// LookupUser returns a user's name. The id "<server>/<user>" asks for the name in that server:
// the nickname, else the display name, else the user name.
func (a *Adapter) LookupUser(ctx context.Context, id string) (adapters.User, error) {
	guild, user, inGuild := strings.Cut(id, "/")
	if !inGuild {
		var answer discordgo.User
		if err := a.get(ctx, "/users/"+id, &answer); err != nil {
			return adapters.User{}, noUser(fmt.Errorf("look up discord user %s: %w", id, err))
		}
		return shownUser(answer, ""), nil
	}
	var member struct {
		User discordgo.User
		Nick string
	}
	if err := a.get(ctx, "/guilds/"+guild+"/members/"+user, &member); err != nil {
		return adapters.User{}, noUser(fmt.Errorf("look up discord member %s: %w", user, err))
	}
	return shownUser(member.User, member.Nick), nil
}

// noUser adds adapters.ErrNoUser to an error if Discord does not know the user, such as one who
// has left the server.
func noUser(err error) error {
	if code := refusedCode(err); code == discordgo.ErrCodeUnknownMember || code == discordgo.ErrCodeUnknownUser {
		return fmt.Errorf("%w: %w", err, adapters.ErrNoUser)
	}
	return err
}

func shownUser(u discordgo.User, nick string) adapters.User {
	return adapters.User{DisplayName: event.Text(cmp.Or(nick, u.GlobalName, u.Username)), IsBot: u.Bot || u.System}
}
