package pipeline

import (
	"maps"
	"slices"

	"parley/adapters"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/journal/budgets"
	"parley/ingest/journal/threads"
)

// AgentsOf returns the ids of the agents of a workspace: its own one, and those of its channels.
func AgentsOf(w *config.Workspace) []string {
	var others []string
	for _, s := range w.Channels {
		if s.Agent != "" && s.Agent != w.Agent {
			others = append(others, s.Agent)
		}
	}
	slices.Sort(others)
	return append([]string{w.Agent}, slices.Compact(others)...)
}

// GroupsOf returns the roles and user groups that the policies of a workspace, or the approvers of its agents, name.
func GroupsOf(w *config.Workspace, agents map[string]Agent, platform adapters.Platform) (groups []string) {
	for _, s := range append(slices.Collect(maps.Values(w.Channels)), w.Settings) {
		groups = slices.Concat(groups, s.Policy.AllowRoles, s.Policy.AllowGroups)
	}
	for _, id := range AgentsOf(w) {
		groups = append(groups, ingest.GroupsIn(agents[id].approvers(platform))...)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// IngestSettings returns the settings of a channel in the form that ingest needs. An agent that is not among agents
// has no approvers.
func IngestSettings(w *config.Workspace, agents map[string]Agent, platform adapters.Platform, channel, parent string) ingest.Settings {
	s := w.Channel(channel, parent)
	settings := ingest.Settings{
		Agent: s.Agent, Policy: s.Policy, Coalesce: s.Turns.Coalesce, CoalesceMax: s.Turns.CoalesceMax, RestartAfter: s.Turns.RestartAfter, LateAge: w.Backfill.MaxAge,
		Limits: s.Limits, WorkspaceLimits: w.Limits, Tokens: tokensOf(w), Commands: w.Commands,
		Approvers: func(id string) []string { return agents[id].approvers(platform) },
	}
	_, settings.Chooses = agents[s.Agent].Profile.Agent.(turn.OffersChoices)
	settings.HasAgent, settings.API = func(agent string) bool { return slices.Contains(AgentsOf(w), agent) }, platform.API
	if platform.API { // a token admits its holder, also a bot
		settings.KeepMetadata, settings.Policy.BotMessages = true, ingest.BotsRun
		settings.Asks = settings.HasAgent
	}
	return settings
}

// TurnSettings returns the settings of the channel of a place in its workspace; the defaults if w is nil, because the
// workspace is not configured any more.
func TurnSettings(w *config.Workspace, at threads.Place) turn.Settings {
	if w == nil {
		none := config.NewWorkspace(at.Workspace, "", "")
		w = &none
	}
	channel := w.Channel(at.Channel, at.Parent)
	return turn.Settings{Config: channel.Turns, NoMentions: channel.Policy.Mentions == ingest.MentionsNone, Names: channel.Policy.Mentions == ingest.MentionsNames, Window: w.Context, MaxConcurrent: w.MaxConcurrent, TimeZone: w.Location(), Tokens: tokensOf(w)}
}

// tokensOf returns the limits of the tokens of a workspace.
func tokensOf(w *config.Workspace) budgets.Tokens {
	return budgets.Tokens{PerUser: int64(w.Limits.TokensPerUser), PerWorkspace: int64(w.Limits.TokensPerWorkspace), Zone: w.Location()}
}
