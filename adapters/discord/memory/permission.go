package memory

import (
	"maps"
	"slices"

	"github.com/bwmarrin/discordgo"
)

// readPermissions let the bot read the messages of a channel.
const readPermissions = int64(discordgo.PermissionViewChannel | discordgo.PermissionReadMessageHistory)

// permissions are the bot's permissions in a channel.
// https://docs.discord.com/developers/topics/permissions#permission-overwrites
func (g *guild) permissions(c *discordgo.Channel, user string) (all int64) {
	for _, r := range g.Roles {
		if r.ID == g.ID || slices.Contains(g.roles, r.ID) {
			all |= r.Permissions
		}
	}
	if g.OwnerID == user || all&discordgo.PermissionAdministrator != 0 {
		return -1
	}
	var allowRoles, denyRoles, allowUser, denyUser int64
	for _, o := range c.PermissionOverwrites {
		switch {
		case o.ID == g.ID:
			all = all&^o.Deny | o.Allow
		case o.ID == user:
			allowUser, denyUser = o.Allow, o.Deny
		case slices.Contains(g.roles, o.ID):
			allowRoles, denyRoles = allowRoles|o.Allow, denyRoles|o.Deny
		}
	}
	all = all&^denyRoles | allowRoles
	return all&^denyUser | allowUser
}

// mayName reports whether everybody who sees the channel in may know the name of the channel c: neither the
// server nor the channel c hides it from its members, or the two channels have the same rules of who sees them.
func (g *guild) mayName(in, c *discordgo.Channel) bool {
	if c.IsThread() {
		parent := g.channels[c.ParentID]
		return c.Type != discordgo.ChannelTypeGuildPrivateThread && parent != nil && g.mayName(in, parent)
	}
	viewers := viewRules(c)
	if in.ID == c.ID || maps.Equal(viewers, viewRules(in)) {
		return true
	}
	if rule, set := viewers[g.ID]; set {
		return rule
	}
	everybody := func(r *discordgo.Role) bool { return r.ID == g.ID && r.Permissions&viewPermissions == 0 }
	return !slices.ContainsFunc(g.Roles, everybody)
}

// viewPermissions let a role see a channel.
const viewPermissions = int64(discordgo.PermissionViewChannel | discordgo.PermissionAdministrator)

// viewRules are the roles and users that a channel shows itself to, and those that it hides itself from.
func viewRules(c *discordgo.Channel) map[string]bool {
	rules := map[string]bool{}
	for _, o := range c.PermissionOverwrites {
		if (o.Allow|o.Deny)&discordgo.PermissionViewChannel != 0 {
			rules[o.ID] = o.Deny&discordgo.PermissionViewChannel == 0
		}
	}
	return rules
}
