package read

import (
	"context"
	"fmt"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/adapters"
	"parley/adapters/discord/call"
	"parley/adapters/discord/payload"
)

// GroupsOf implements adapters.Grouper: it asks for the member in each server that has one of the roles.
func (r *Reader) GroupsOf(ctx context.Context, user string, of []string) (roles []string, err error) {
	if !payload.IsID(user) {
		return nil, nil
	}
	for _, guild := range r.memory.Servers.WithRoles(of) {
		in, err := r.roles.Get(ctx, guild+"/"+user, func(ctx context.Context) ([]string, time.Duration, error) {
			var member discordgo.Member
			err := r.client.Get(ctx, "/guilds/"+guild+"/members/"+user, &member)
			if code := call.Code(err); code == discordgo.ErrCodeUnknownMember || code == discordgo.ErrCodeUnknownUser {
				return nil, adapters.GroupsTime, nil
			}
			return member.Roles, adapters.GroupsTime, err
		})
		if err != nil {
			return nil, fmt.Errorf("look up the roles of a member of discord server %s: %w", guild, err)
		}
		roles = append(roles, in...)
	}
	return roles, nil
}
