package read

import (
	"context"
	"fmt"
	"slices"

	"github.com/bwmarrin/discordgo"

	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

// Sees implements adapters.Viewer: those can read a channel who have its permissions, and a private thread also needs its members.
// https://docs.discord.com/developers/topics/permissions#permission-overwrites
func (r *Reader) Sees(ctx context.Context, channel, user string) (bool, error) {
	if !payload.IsID(channel) || !payload.IsID(user) {
		return false, nil
	}
	c, err := r.channel(ctx, channel)
	switch {
	case err != nil:
		return false, err
	case c.GuildID == "":
		return slices.ContainsFunc(c.Recipients, func(u *discordgo.User) bool { return u != nil && u.ID == user }), nil
	}
	if c.Type == discordgo.ChannelTypeGuildPrivateThread {
		err := r.client.Get(ctx, "/channels/"+channel+"/thread-members/"+user, new(struct{}))
		if call.Code(err) == discordgo.ErrCodeUnknownMember {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look up a member of discord thread %s: %w", channel, err)
		}
	}
	if c.IsThread() {
		if c, err = r.channel(ctx, c.ParentID); err != nil {
			return false, err
		}
	}
	var member discordgo.Member
	err = r.client.Get(ctx, "/guilds/"+c.GuildID+"/members/"+user, &member)
	if code := call.Code(err); code == discordgo.ErrCodeUnknownMember || code == discordgo.ErrCodeUnknownUser {
		return false, nil
	}
	var guild discordgo.Guild
	if err == nil {
		err = r.client.Get(ctx, "/guilds/"+c.GuildID, &guild)
	}
	if err != nil {
		return false, fmt.Errorf("look up the permissions in discord channel %s: %w", channel, err)
	}
	const needed = discordgo.PermissionViewChannel | discordgo.PermissionReadMessageHistory
	return guild.OwnerID == user || permissions(&guild, c, user, member.Roles)&needed == needed, nil
}

// permissions returns those of a member of a server in a channel.
func permissions(guild *discordgo.Guild, c *discordgo.Channel, user string, roles []string) (all int64) {
	for _, role := range guild.Roles {
		if role.ID == guild.ID || slices.Contains(roles, role.ID) {
			all |= role.Permissions
		}
	}
	if all&discordgo.PermissionAdministrator != 0 {
		return -1
	}
	apply := func(of func(*discordgo.PermissionOverwrite) bool) {
		var allow, deny int64
		for _, o := range c.PermissionOverwrites {
			if of(o) {
				allow, deny = allow|o.Allow, deny|o.Deny
			}
		}
		all = all&^deny | allow
	}
	isRole := func(o *discordgo.PermissionOverwrite) bool { return o.Type == discordgo.PermissionOverwriteTypeRole }
	apply(func(o *discordgo.PermissionOverwrite) bool { return isRole(o) && o.ID == guild.ID })
	apply(func(o *discordgo.PermissionOverwrite) bool {
		return isRole(o) && o.ID != guild.ID && slices.Contains(roles, o.ID)
	})
	apply(func(o *discordgo.PermissionOverwrite) bool { return !isRole(o) && o.ID == user })
	return all
}
