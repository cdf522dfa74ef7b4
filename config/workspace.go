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

// workspaceFile is what a workspace's file may hold.
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
	node, ok := f.open()
	if !ok {
		l.faults = append(l.faults, f.faults...)
		return w
	}
	values := f.mapping(node, "", reflect.TypeFor[workspaceFile]())
	entries := take(values, "channels")
	f.account(&w, values)
	f.decode("", &w, values)
	w.settle()
	f.judgeWorkspace(&w, agents)
	f.channels(&w, entries, pick(values, "agent", "policy", "turns"), agents)
	l.once(f, &w)
	l.places[w.ID] = f
	l.faults = append(l.faults, f.sorted()...)
	return w
}

// account gives the workspace the defaults of the platforms that it has a block
// of, and takes the web's tokens out of values, each over its own defaults.
func (f *file) account(w *Workspace, values map[string]any) {
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
	for i, item := range take(block, "tokens") {
		token := web.DefaultToken()
		f.decode(fmt.Sprintf("web.tokens[%d]", i), &token, item)
		w.Web.Tokens = append(w.Web.Tokens, token)
	}
}

// settle derives what one part of a workspace tells another.
func (w *Workspace) settle() {
	if w.Slack != nil {
		w.Slack.APIURL = strings.TrimSuffix(w.Slack.APIURL, "/") + "/"
	}
	if w.Discord != nil {
		w.Discord.APIURL = strings.TrimSuffix(w.Discord.APIURL, "/") + "/"
	}
	w.Policy.FromMe = w.BlueBubbles != nil && w.BlueBubbles.FromMe == bluebubbles.FromMeRun
}

// judgeWorkspace reports the faults of all but the channels.
func (f *file) judgeWorkspace(w *Workspace, agents []Agent) {
	var faults event.FieldErrors
	check := faults.Check
	check(idForm.MatchString(w.ID), "id", idWords)
	known := slices.Contains(event.Platforms, w.Platform)
	check(known, "platform", "must be slack, discord, bluebubbles or web")
	check(!known || f.has(string(w.Platform)), "platform", fmt.Sprintf("needs its settings under %s:", w.Platform))
	for _, other := range event.Platforms {
		check(!known || other == w.Platform || !f.has(string(other)), string(other),
			fmt.Sprintf("has no effect, since the platform is %s: take it out", w.Platform))
	}
	check(w.Context.Turns > 0, "context.turns", "must be at least 1")
	check(w.Context.Bytes > 0, "context.bytes", "must be at least 1")
	check(w.Context.Thread >= 0, "context.thread", "must be 0 or more")
	f.judge(faults)
	f.judge(prefixed("catch_up", w.Backfill.Validate()))
	f.judge(w.Settings.faults(agents))
	if w.Slack != nil {
		f.judge(prefixed("slack", w.Slack.Validate()))
	}
	if w.Discord != nil {
		f.judge(prefixed("discord", w.Discord.Validate()))
	}
	if w.BlueBubbles != nil {
		f.judge(prefixed("bluebubbles", w.BlueBubbles.Validate()))
	}
	if w.Web != nil {
		f.judge(prefixed("web", w.Web.Validate()))
	}
}

// faults judges the settings that a channel may have of its own.
func (s Settings) faults(agents []Agent) event.FieldErrors {
	var faults event.FieldErrors
	if len(agents) > 0 && find(agents, s.Agent) < 0 { // without agents, parley.yaml has a fault
		names := make([]string, len(agents))
		for i, agent := range agents {
			names[i] = agent.ID
		}
		faults = append(faults, event.FieldError{Field: "agent", Message: "must be one of the agents: " + strings.Join(names, ", ")})
	}
	faults = append(faults, prefixed("policy", s.Policy.Validate())...)
	return append(faults, prefixed("turns", s.Turns.Validate())...)
}

// channels lays each entry's settings over the workspace's.
func (f *file) channels(w *Workspace, entries []map[string]any, base map[string]any, agents []Agent) {
	inherited := w.Settings.faults(agents)
	first := map[string]int{}
	w.Channels = make(map[string]Settings, len(entries))
	for i, entry := range entries {
		at := fmt.Sprintf("channels[%d]", i)
		name, _ := entry["id"].(string)
		delete(entry, "id")
		settings := NewWorkspace("", "", "").Settings
		f.decode(at, &settings, base, entry)
		settings.Policy.FromMe = w.Policy.FromMe
		w.Channels[name] = settings

		faults := slices.DeleteFunc(settings.faults(agents), func(fault event.FieldError) bool {
			return slices.Contains(inherited, fault)
		})
		if place, doubled := first[name]; name == "" {
			faults = append(faults, event.FieldError{Field: "id", Message: "is required: the channel's id, as the platform writes it"})
		} else if doubled {
			words := fmt.Sprintf("is that of channels[%d] too: put a channel's settings into one entry", place)
			faults = append(faults, event.FieldError{Field: "id", Message: words})
		} else {
			first[name] = i
		}
		f.judge(prefixed(at, faults))
	}
}

// once reports what another workspace has already: two workspaces on one
// account would answer everything twice, or each miss what the other gets.
func (l *loader) once(f *file, w *Workspace) {
	claim := func(key, value, words string) {
		if value == "" {
			return
		}
		if where, ok := l.taken[key+"="+value]; ok {
			f.fault(f.line(key), key, fmt.Sprintf(words, where))
			return
		}
		l.taken[key+"="+value] = f.where(key)
	}
	const twice = "is in %s too: one account can't be two workspaces"
	claim("id", w.ID, "is that of the workspace in %s too: each workspace needs an id of its own")
	if w.Slack != nil {
		claim("slack.bot_token", w.Slack.BotToken.Reveal(), twice)
		claim("slack.app_token", w.Slack.AppToken.Reveal(),
			"is in %s too: Slack would send each event to one of the two, whichever team it is of; use mode http for an app in several teams")
	}
	if w.Discord != nil {
		claim("discord.token", w.Discord.Token.Reveal(), twice)
	}
	if w.BlueBubbles != nil {
		claim("bluebubbles.url", w.BlueBubbles.URL, twice)
	}
}

// pick returns the named keys of values, those that are there.
func pick(values map[string]any, names ...string) map[string]any {
	picked := map[string]any{}
	for _, name := range names {
		if value, ok := values[name]; ok {
			picked[name] = value
		}
	}
	return picked
}
