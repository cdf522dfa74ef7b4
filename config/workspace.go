package config

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // a machine may have no time zones of its own

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
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
func (l *loader) workspace(f *file, agents []Agent) Workspace {
	w := NewWorkspace("", "", "")
	node, ok := f.parse()
	if !ok {
		return w
	}
	values := f.mapping(node, "", reflect.TypeFor[workspaceFile]())
	entries := takeList(values, "channels")
	blocks := f.platforms(values)
	f.decode("", &w, values)
	w.Config = blocks[w.Platform]
	if owner, ok := w.Config.(interface{ RunsFromMe() bool }); ok {
		w.Policy.FromMe = owner.RunsFromMe()
	}
	if texts, ok := w.Config.(interface{ TextMessages() string }); ok {
		w.Policy.SMS = texts.TextMessages()
	}
	f.report(w.faults(blocks, agents))
	platform, _ := Platform(w.Platform)
	w.Policy = w.Policy.Known(platform.KnownPerson, platform.KnownID)
	f.channels(&w, entries, platform, pick(values, "agent", "policy", "turns", "limits"), agents)
	l.checkUnique(f, &w)
	l.places[w.ID] = f
	return w
}

// platforms reads the settings of each platform that the file has, and removes them from
// values.
func (f *file) platforms(values map[string]any) map[event.Platform]adapters.Config {
	blocks := map[event.Platform]adapters.Config{}
	for _, p := range platforms {
		key := string(p.Name)
		if !f.has(key) {
			continue
		}
		blocks[p.Name] = p.Config()
		block, _ := values[key].(map[string]any)
		f.decode(key, blocks[p.Name], block)
		delete(values, key)
	}
	return blocks
}

// faults returns the faults of a workspace's values, except for those of its channels.
// blocks are the settings of platforms that its file has.
func (w *Workspace) faults(blocks map[event.Platform]adapters.Config, agents []Agent) event.FieldErrors {
	var check checks
	check.require(idForm.MatchString(w.ID), "id", idWords)
	platform, known := Platform(w.Platform)
	check.oneOf("platform", string(w.Platform), PlatformNames()...)
	check.require(!known || w.Config != nil, "platform", fmt.Sprintf("needs the platform's settings under %s:", w.Platform))
	for _, p := range platforms {
		key, block := string(p.Name), blocks[p.Name]
		check.require(!known || block == nil || p.Name == w.Platform, key,
			fmt.Sprintf("has no effect because the platform is %s: remove it", w.Platform))
		if block != nil {
			check.under(key, block.Validate())
		}
	}
	check.require(w.MaxConcurrent >= 0, "max_concurrent", "must be 0 or more")
	check.require(w.Context.Turns > 0, "context.turns", "must be at least 1")
	check.require(w.Context.Bytes > 0, "context.bytes", "must be at least 1")
	check.require(w.Context.Thread >= 0, "context.thread", "must be 0 or more")
	_, err := time.LoadLocation(w.TimeZone)
	check.require(err == nil && w.TimeZone != "Local", "time_zone", "must be the name of a time zone, such as Europe/Vienna")
	for i, kind := range w.Rows {
		check.oneOf(fmt.Sprintf("rows[%d]", i), kind, runs.RowAnswer, runs.RowTool, runs.RowStage)
	}
	check.under("commands", w.Commands.Validate())
	check.under("catch_up", w.Backfill.Validate())
	check.under("", w.Settings.faults(agents, platform))
	w.schedules(&check, platform, agents)
	return check.faults
}

// schedules adds the faults of the workspace's schedules.
func (w *Workspace) schedules(check *checks, platform adapters.Platform, agents []Agent) {
	known := func(id string) bool {
		return slices.ContainsFunc(agents, func(a Agent) bool { return a.ID == id || a.ID == "" })
	}
	ids := unique{}
	for i := range w.Schedules {
		s, at := &w.Schedules[i], fmt.Sprintf("schedules[%d]", i)
		check.require(idForm.MatchString(s.ID), at+".id", idWords)
		before := ids.add(s.ID, at)
		check.require(before == "", at+".id", "is also the id of "+before+": give each schedule its own id")
		check.under(at, s.Validate())
		check.require(s.Agent == "" || len(agents) == 0 || known(s.Agent), at+".agent", "must be the id of an agent")
		check.require(platform.Name == "" || platform.Conversation != nil, at, "has no place, because the platform has no channels: remove it")
		check.require(s.To.Channel == "" || platform.IsChannel == nil || platform.IsChannel(s.To.Channel), at+".to.channel", ingest.NotChannel)
		check.require(s.To.User == "" || platform.IsUser == nil || platform.IsUser(s.To.User), at+".to.user", ingest.NotUser)
	}
}

// faults returns the faults of the settings that a channel can have of its own. It does
// not check the agent if the ids of all agents are not known: parley.yaml has a fault then.
func (s Settings) faults(agents []Agent, platform adapters.Platform) event.FieldErrors {
	var check checks
	ids := make([]string, len(agents))
	for i, agent := range agents {
		ids[i] = agent.ID
	}
	check.require(len(ids) == 0 || slices.Contains(ids, "") || slices.Contains(ids, s.Agent), "agent", "must be one of the agents: "+strings.Join(ids, ", "))
	check.under("policy", s.Policy.Validate(formsOf(platform)))
	if at := slices.IndexFunc(agents, func(a Agent) bool { return a.ID == s.Agent && a.Config != nil }); at >= 0 && s.Policy.Strangers == ingest.StrangersAsk && platform.Asks {
		check.require(agents[at].asks(platform), "policy.strangers", fmt.Sprintf(
			"ask has nobody to ask: add users of this platform to the approvers of agent %s; a role and a user group get no direct message", s.Agent))
	}
	check.under("turns", s.Turns.Validate())
	check.under("limits", s.Limits.Validate())
	return check.faults
}

// AsksAboutStrangers reports whether the policy of the workspace or of one of its channels asks about strangers.
func (w *Workspace) AsksAboutStrangers() bool {
	for _, s := range w.Channels {
		if s.Policy.Strangers == ingest.StrangersAsk {
			return true
		}
	}
	return w.Policy.Strangers == ingest.StrangersAsk
}

// asks reports whether an approver of an agent is a user of a platform, so that the bot can write to the user.
func (a Agent) asks(platform adapters.Platform) bool {
	return slices.ContainsFunc(a.Config.Bounds().Approvers, func(id string) bool {
		return len(ingest.UsersIn([]string{platform.KnownPerson(id)})) > 0 && (platform.IsUser == nil || platform.IsUser(platform.KnownPerson(id)))
	})
}

// formsOf returns the forms of the listed ids on a platform; nil if any string may be an id. The
// workspaces of several platforms can share a list, so the ids of other platforms pass too.
func formsOf(p adapters.Platform) (forms ingest.Forms) {
	if p.IsUser != nil {
		forms.User = func(id string) bool {
			if strings.Contains(id, ":") { // a whole sender_id; only the platform's own must have the form
				own, isOwn := strings.CutPrefix(id, p.Namespace()+":")
				return !isOwn || p.IsUser(own)
			}
			return slices.ContainsFunc(platforms, func(p adapters.Platform) bool { return p.IsUser != nil && p.IsUser(id) })
		}
	}
	forms.App, forms.Role, forms.Group = p.IsApp, p.IsRole, p.IsGroup
	forms.NoServers, forms.NoThreads, forms.NoAsking = p.Name != "" && p.IsServer == nil, p.Name != "" && p.Beside == nil, p.Name != "" && !p.Asks
	forms.Server = func(id string) bool {
		return slices.ContainsFunc(platforms, func(p adapters.Platform) bool { return p.IsServer != nil && p.IsServer(id) })
	}
	if p.IsChannel != nil {
		forms.Channel = func(id string) bool {
			return slices.ContainsFunc(platforms, func(p adapters.Platform) bool { return p.IsChannel != nil && p.IsChannel(id) })
		}
	}
	return forms
}

// channels lays each entry's settings over the workspace's. It does not repeat the
// workspace's faults for a channel that inherits them.
func (f *file) channels(w *Workspace, entries []map[string]any, platform adapters.Platform, base map[string]any, agents []Agent) {
	inherited := w.Settings.faults(agents, platform)
	ids := unique{}
	w.Channels = make(map[string]Settings, len(entries))
	for i, entry := range entries {
		at := fmt.Sprintf("channels[%d]", i)
		id, _ := entry["id"].(string)
		id = platform.KnownID(id)
		delete(entry, "id")
		settings := NewWorkspace("", "", "").Settings
		f.decode(at, &settings, base, entry)
		settings.Policy.FromMe, settings.Policy.SMS = w.Policy.FromMe, w.Policy.SMS
		settings.Policy = settings.Policy.Known(platform.KnownPerson, platform.KnownID)
		own, _ := entry["limits"].(map[string]any)
		if _, ok := own["runs_per_user"]; ok {
			settings.Limits.RunsPerUser.Channel = id
		}
		if _, ok := own["runs_per_workspace"]; ok {
			settings.Limits.RunsPerWorkspace.Channel = id
		}
		w.Channels[id], f.entries[id] = settings, at

		var check checks
		for _, key := range []string{"tokens_per_user", "tokens_per_workspace"} {
			_, has := own[key]
			check.require(!has, at+".limits."+key, "has no effect for one channel, because the tokens of a day are those of the workspace: set it under limits")
		}
		check.under(at, slices.DeleteFunc(settings.faults(agents, platform), func(fault event.FieldError) bool {
			return slices.Contains(inherited, fault)
		}))
		before := ids.add(id, at)
		check.require(id != "", at+".id", "is required: the channel's id, as the platform writes it")
		check.require(id == "" || platform.IsChannel == nil || platform.IsChannel(id), at+".id", ingest.NotChannel)
		check.require(before == "", at+".id", "is also the id of "+before+": put the channel's settings into one entry")
		f.report(check.faults)
	}
}

// checkUnique reports an id or an account that an earlier workspace has.
func (l *loader) checkUnique(f *file, w *Workspace) {
	check := func(key, value, before, remedy string) {
		if value == "" {
			return
		}
		if place := l.unique.add(key+"="+value, f.location(key)); place != "" {
			f.fault(f.line(key), key, before+place+": "+remedy)
		}
	}
	check("id", w.ID, "is also the id of the workspace in ", "give each workspace its own id")
	if w.Config == nil {
		return
	}
	for _, account := range w.Config.Accounts() {
		check(join(string(w.Platform), account.Key), account.Value, "is also in ", cmp.Or(account.Words, "use an account in one workspace only"))
	}
}

// checkReads reports each workspace that a web token may read, or where it or an agent may post, and that no file has. It reports
// none if the id of a file is unknown.
func (l *loader) checkReads(main *file, files []*file, c *Config) {
	workspaces := c.Workspaces
	ids := make([]string, len(workspaces))
	for i, w := range workspaces {
		ids[i] = w.ID
	}
	if slices.Contains(ids, "") {
		return
	}
	var places checks
	for i, a := range c.Agents {
		for k, place := range a.Tools.Post {
			id, _, _ := strings.Cut(place, ":")
			places.require(slices.Contains(ids, id) || len(ids) == 0, fmt.Sprintf("agents[%d].tools.post[%d]", i, k), "must begin with one of the workspaces: "+strings.Join(ids, ", "))
		}
	}
	main.report(places.faults)
	for i, w := range workspaces {
		own, _ := w.Config.(*access.Config)
		if own == nil {
			continue
		}
		var check checks
		for j, token := range own.Tokens {
			for k, id := range token.Read {
				check.require(slices.Contains(ids, id), fmt.Sprintf("web.tokens[%d].read[%d]", j, k), "must be one of the workspaces: "+strings.Join(ids, ", "))
			}
			for k, id := range token.Injects {
				check.require(slices.Contains(ids, id), fmt.Sprintf("web.tokens[%d].injects[%d]", j, k), "must be one of the workspaces: "+strings.Join(ids, ", "))
			}
			for k, id := range token.Posting() {
				check.require(slices.Contains(ids, id), fmt.Sprintf("web.tokens[%d].posts[%d]", j, k), "must begin with one of the workspaces: "+strings.Join(ids, ", "))
			}
		}
		files[i].report(check.faults)
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
