package discord

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
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
	{discordgo.PermissionEmbedLinks, "Embed Links"},
	{discordgo.PermissionAttachFiles, "Attach Files"},
	{discordgo.PermissionReadMessageHistory, "Read Message History"},
	{discordgo.PermissionAddReactions, "Add Reactions"},
}

// The flags of an application that may have the content of messages.
// https://docs.discord.com/developers/resources/application#application-object-application-flags
const contentFlags = 1<<18 | 1<<19

// publicWords warn of a bot that strangers may use.
const publicWords = "the bot is public, so anybody can add it to a server of their own and use the agent: list your servers in policy.allow_servers, or turn off Public Bot on the page Bot of the application in Discord's developer portal"

// application is the bot's application. Anybody may add a public bot to a server.
// https://docs.discord.com/developers/resources/application#application-object
type application struct {
	ID     string `json:"id"`
	Flags  int64  `json:"flags"`
	Public bool   `json:"bot_public"`
}

func (a *Adapter) askApplication(ctx context.Context) (app application, err error) {
	return app, a.Client.Get(ctx, "/applications/@me", &app)
}

// warnPublic logs a warning if strangers may use the bot.
func (a *Adapter) warnPublic(ctx context.Context, link adapters.Link) {
	if app, err := a.askApplication(ctx); err == nil && app.Public {
		link.Log.Warn(publicWords)
	}
}

// Check asks for the application and for the permissions in each server. A note has the invite link.
func (a *Adapter) Check(ctx context.Context, wants adapters.Wants) (found []adapters.Finding, err error) {
	app, err := a.askApplication(ctx)
	switch {
	case call.Status(err) == http.StatusUnauthorized:
		return []adapters.Finding{{Key: "token", Words: "is refused by Discord: " + call.CheckToken, Fault: true}}, nil
	case err != nil:
		return nil, fmt.Errorf("ask discord for the application: %w", err)
	}
	if app.Flags&contentFlags == 0 {
		found = append(found, adapters.Finding{Key: "token", Words: "the bot may not read the content of messages: " + call.AllowContent, Fault: true})
	}
	if app.Public && wants.AnyServer {
		found = append(found, adapters.Finding{Key: "token", Words: publicWords})
	}
	var all int64
	for _, p := range needed {
		all |= p.bit
	}
	found = append(found, adapters.Finding{Key: "token", Note: true, Words: "invite the bot to a server with https://discord.com/oauth2/authorize?client_id=" + app.ID +
		"&scope=bot+applications.commands&permissions=" + strconv.FormatInt(all, 10)})
	guilds, err := a.checkGuilds(ctx)
	return append(found, guilds...), err
}

// checkGuilds returns a finding for each server in which the bot lacks permissions.
// https://docs.discord.com/developers/resources/user#get-current-user-guilds
func (a *Adapter) checkGuilds(ctx context.Context) (found []adapters.Finding, err error) {
	const page = 200
	for after := "0"; ; {
		var list []discordgo.UserGuild
		if err := a.Client.Get(ctx, "/users/@me/guilds?limit="+strconv.Itoa(page)+"&after="+after, &list); err != nil {
			return found, fmt.Errorf("ask discord for the bot's servers: %w", err)
		}
		for _, g := range list {
			after = g.ID
			if missing := lacking(g); len(missing) > 0 {
				found = append(found, adapters.Finding{Key: "token", Words: fmt.Sprintf("the bot lacks permissions in the server %q: %s", g.Name, strings.Join(missing, ", "))})
			}
		}
		if len(list) < page {
			return found, nil
		}
	}
}

// lacking returns the names of the permissions that the bot lacks in a server.
func lacking(g discordgo.UserGuild) (names []string) {
	for _, p := range needed {
		if !g.Owner && g.Permissions&discordgo.PermissionAdministrator == 0 && g.Permissions&p.bit == 0 {
			names = append(names, p.name)
		}
	}
	return names
}
