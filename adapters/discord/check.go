package discord

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
)

// needed are the permissions of the bot, with their names in Discord.
var needed = []struct {
	bit  int64
	name string
}{
	{discordgo.PermissionViewChannel, "View Channels"},
	{discordgo.PermissionSendMessages, "Send Messages"},
	{discordgo.PermissionSendMessagesInThreads, "Send Messages in Threads"},
	{discordgo.PermissionCreatePublicThreads, "Create Public Threads"},
	{discordgo.PermissionAttachFiles, "Attach Files"},
	{discordgo.PermissionReadMessageHistory, "Read Message History"},
	{discordgo.PermissionAddReactions, "Add Reactions"},
}

// The flags of an application that may have the content of messages.
// https://docs.discord.com/developers/resources/application#application-object-application-flags
const contentFlags = 1<<18 | 1<<19

// Check asks for the bot, the application, and the permissions in each server. A note has the
// invite link.
func (a *Adapter) Check(ctx context.Context, _ adapters.Wants) (found []adapters.Finding, err error) {
	var user discordgo.User
	var refused *adapters.RefusedError
	switch err := markRefused(a.get(ctx, "/users/@me", &user)); {
	case errors.As(err, &refused):
		return []adapters.Finding{{Key: "token", Words: "is refused by Discord: " + refused.Hint, Fault: true}}, nil
	case err != nil:
		return nil, fmt.Errorf("ask discord who we are: %w", err)
	}
	var app struct {
		ID    string `json:"id"`
		Flags int64  `json:"flags"`
	}
	if err := a.get(ctx, "/applications/@me", &app); err != nil {
		return nil, fmt.Errorf("ask discord for the application: %w", err)
	}
	if app.Flags&contentFlags == 0 {
		found = append(found, adapters.Finding{Key: "token", Words: "the bot may not read the content of messages: " + allowContent, Fault: true})
	}
	var all int64
	for _, p := range needed {
		all |= p.bit
	}
	found = append(found, adapters.Finding{Key: "token", Note: true, Words: "invite the bot to a server with https://discord.com/oauth2/authorize?client_id=" + app.ID +
		"&scope=bot+applications.commands&permissions=" + strconv.FormatInt(all, 10)})
	lacking, err := a.checkGuilds(ctx, user.ID)
	return append(found, lacking...), err
}

// checkGuilds returns a finding for each server in which the bot lacks permissions.
func (a *Adapter) checkGuilds(ctx context.Context, user string) (found []adapters.Finding, err error) {
	const page = 200
	for after := "0"; ; {
		var list []discordgo.UserGuild
		if err := a.get(ctx, "/users/@me/guilds?limit="+strconv.Itoa(page)+"&after="+after, &list); err != nil {
			return found, fmt.Errorf("ask discord for the bot's servers: %w", err)
		}
		for _, g := range list {
			after = g.ID
			missing, err := a.lacking(ctx, g.ID, user)
			switch {
			case err != nil:
				return found, err
			case len(missing) > 0:
				found = append(found, adapters.Finding{Key: "token", Words: fmt.Sprintf("the bot lacks permissions in the server %q: %s", g.Name, strings.Join(missing, ", "))})
			}
		}
		if len(list) < page {
			return found, nil
		}
	}
}

// lacking returns the names of the permissions that the bot lacks in a server.
func (a *Adapter) lacking(ctx context.Context, id, user string) (names []string, err error) {
	g := guild{Guild: new(discordgo.Guild)}
	if err := a.get(ctx, "/guilds/"+id, g.Guild); err != nil {
		return nil, fmt.Errorf("ask discord for server %s: %w", id, err)
	}
	member, err := a.member(ctx, id, user)
	if err != nil {
		return nil, err
	}
	g.roles = member.Roles
	has := g.base(user)
	for _, p := range needed {
		if has&discordgo.PermissionAdministrator == 0 && has&p.bit == 0 {
			names = append(names, p.name)
		}
	}
	return names, nil
}
