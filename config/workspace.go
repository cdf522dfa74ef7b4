package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"parley/adapters/bluebubbles"
	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/web"
	"parley/ingest/event"
)

// workspaceFile is the content of a workspace's file.
type workspaceFile struct {
	Workspace `yaml:",inline"`
	Entries   []channel `yaml:"channels"`
}

// channel is one entry of a workspace's channels.
type channel struct {
	ID       string `yaml:"id"`
	Settings `yaml:",inline"`
}

// workspace reads one workspace's file.
func (l *loader) workspace(name string, agents []Agent) Workspace {
	f, w := l.file(name), NewWorkspace("", "", "")
	node, ok := f.parse()
	if !ok {
		l.faults = append(l.faults, f.faults...)
		return w
	}
	values := f.mapping(node, "", reflect.TypeFor[workspaceFile]())
	entries := takeList(values, "channels")
	f.platformDefaults(&w, values)
	f.decode("", &w, values)
	w.derive()
	f.report(w.faults(f.has, agents))
	f.channels(&w, entries, pick(values, "agent", "policy", "turns"), agents)
	l.checkUnique(f, &w)
	l.places[w.ID] = f
	l.faults = append(l.faults, f.sorted()...)
	return w
}

// platformDefaults gives the workspace the defaults of each platform whose block the file
// has. It moves the web tokens from values to the workspace, each over its own defaults.
func (f *file) platformDefaults(w *Workspace, values map[string]any) {
	if f.has("slack") {
		w.Slack = new(slack.DefaultConfig())
	}
	if f.has("discord") {
		w.Discord = new(discord.DefaultConfig())
	}
	if f.has("bluebubbles") {
		w.BlueBubbles = new(bluebubbles.DefaultConfig())
	}
	if !f.has("web") {
		return
	}
	w.Web = new(web.DefaultConfig())
	block, _ := values["web"].(map[string]any)
	for i, item := range takeList(block, "tokens") {
		token := web.DefaultToken()
		f.decode(fmt.Sprintf("web.tokens[%d]", i), &token, item)
		w.Web.Tokens = append(w.Web.Tokens, token)
	}
}

// derive sets the values that depend on other settings.
func (w *Workspace) derive() {
	if w.Slack != nil {
		w.Slack.APIURL = strings.TrimSuffix(w.Slack.APIURL, "/") + "/"
	}
	if w.Discord != nil {
		w.Discord.APIURL = strings.TrimSuffix(w.Discord.APIURL, "/") + "/"
	}
	w.Policy.FromMe = w.BlueBubbles != nil && w.BlueBubbles.FromMe == bluebubbles.FromMeRun
}

// validator is a component's settings.
type validator interface{ Validate() event.FieldErrors }

// blocks returns the platforms' settings that the workspace has.
func (w *Workspace) blocks() map[event.Platform]validator {
	blocks := map[event.Platform]validator{}
	if w.Slack != nil {
		blocks[event.Slack] = w.Slack
	}
	if w.Discord != nil {
		blocks[event.Discord] = w.Discord
	}
	if w.BlueBubbles != nil {
		blocks[event.BlueBubbles] = w.BlueBubbles
	}
	if w.Web != nil {
		blocks[event.Web] = w.Web
	}
	return blocks
}

// faults returns the faults of a workspace's values, except for those of its channels.
// The function has reports whether the file has a key.
func (w *Workspace) faults(has func(key string) bool, agents []Agent) event.FieldErrors {
	var check checks
	check.require(idForm.MatchString(w.ID), "id", idWords)
	known := slices.Contains(event.Platforms, w.Platform)
	check.require(known, "platform", "must be slack, discord, bluebubbles or web")
	check.require(!known || has(string(w.Platform)), "platform", fmt.Sprintf("needs the platform's settings under %s:", w.Platform))
	blocks := w.blocks()
	for _, platform := range event.Platforms {
		key := string(platform)
		check.require(!known || platform == w.Platform || !has(key), key,
			fmt.Sprintf("has no effect because the platform is %s: remove it", w.Platform))
		if block := blocks[platform]; block != nil {
			check.under(key, block.Validate())
		}
	}
	check.require(w.Context.Turns > 0, "context.turns", "must be at least 1")
	check.require(w.Context.Bytes > 0, "context.bytes", "must be at least 1")
	check.require(w.Context.Thread >= 0, "context.thread", "must be 0 or more")
	check.under("catch_up", w.Backfill.Validate())
	check.under("", w.Settings.faults(agents))
	return check.faults
}

// faults returns the faults of the settings that a channel can have of its own. It does
// not check the agent if there are no agents: parley.yaml has a fault then.
func (s Settings) faults(agents []Agent) event.FieldErrors {
	var check checks
	ids := make([]string, len(agents))
	for i, agent := range agents {
		ids[i] = agent.ID
	}
	check.require(len(ids) == 0 || slices.Contains(ids, s.Agent), "agent", "must be one of the agents: "+strings.Join(ids, ", "))
	check.under("policy", s.Policy.Validate())
	check.under("turns", s.Turns.Validate())
	return check.faults
}

// channels lays each entry's settings over the workspace's. It does not repeat the
// workspace's faults for a channel that inherits them.
func (f *file) channels(w *Workspace, entries []map[string]any, base map[string]any, agents []Agent) {
	inherited := w.Settings.faults(agents)
	ids := unique{}
	w.Channels = make(map[string]Settings, len(entries))
	for i, entry := range entries {
		at := fmt.Sprintf("channels[%d]", i)
		id, _ := entry["id"].(string)
		delete(entry, "id")
		settings := NewWorkspace("", "", "").Settings
		f.decode(at, &settings, base, entry)
		settings.Policy.FromMe = w.Policy.FromMe
		w.Channels[id] = settings

		var check checks
		check.under(at, slices.DeleteFunc(settings.faults(agents), func(fault event.FieldError) bool {
			return slices.Contains(inherited, fault)
		}))
		before := ids.add(id, at)
		check.require(id != "", at+".id", "is required: the channel's id, as the platform writes it")
		check.require(before == "", at+".id", "is also the id of "+before+": put the channel's settings into one entry")
		f.report(check.faults)
	}
}

// checkUnique reports an id or an account that an earlier workspace has. Two workspaces
// on one account would answer each message twice, or share the events between them.
func (l *loader) checkUnique(f *file, w *Workspace) {
	check := func(key, value, words string) {
		if value == "" {
			return
		}
		if before := l.unique.add(key+"="+value, f.location(key)); before != "" {
			f.fault(f.line(key), key, fmt.Sprintf(words, before))
		}
	}
	const account = "is also in %s: use an account in one workspace only"
	check("id", w.ID, "is also the id of the workspace in %s: give each workspace its own id")
	if w.Slack != nil {
		check("slack.bot_token", w.Slack.BotToken.Reveal(), account)
		check("slack.app_token", w.Slack.AppToken.Reveal(),
			"is also in %s: Slack would send each event to only one of the two workspaces; use mode http for an app in several teams")
	}
	if w.Discord != nil {
		check("discord.token", w.Discord.Token.Reveal(), account)
	}
	if w.BlueBubbles != nil {
		check("bluebubbles.url", w.BlueBubbles.URL, account)
	}
}

// pick returns the named keys of values, as far as they are set.
func pick(values map[string]any, names ...string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		if value, ok := values[name]; ok {
			picked[name] = value
		}
	}
	return picked
}
