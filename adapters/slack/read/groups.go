package read

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"parley/adapters"
	"parley/adapters/slack/call"
)

// GroupsOf implements adapters.Grouper. It keeps the members of all user groups.
// https://docs.slack.dev/reference/methods/usergroups.list
func (r *Reader) GroupsOf(ctx context.Context, user string, _ []string) ([]string, error) {
	groups, err := r.groups.Get(ctx, "", func(ctx context.Context) (map[string][]string, time.Duration, error) {
		var answer struct {
			call.Answer
			Groups []struct {
				ID    string   `json:"id"`
				Users []string `json:"users"`
			} `json:"usergroups"`
		}
		if err := r.client.Ask(ctx, "usergroups.list", url.Values{"include_users": {"true"}}, &answer); err != nil {
			return nil, 0, fmt.Errorf("list the slack user groups: %w", err)
		}
		groups := map[string][]string{}
		for _, g := range answer.Groups {
			for _, u := range g.Users {
				groups[u] = append(groups[u], g.ID)
			}
		}
		return groups, adapters.GroupsTime, nil
	})
	return groups[user], err
}

// ForgetGroups forgets the members of the user groups, because they have changed.
func (r *Reader) ForgetGroups() { r.groups.Forget() }
