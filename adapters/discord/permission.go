package discord

import (
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
