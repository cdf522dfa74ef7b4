package daemon

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/agent/toolserver"
	"parley/adapters/backfill"
	"parley/adapters/deliver"
	"parley/adapters/web"
	"parley/adapters/web/access"
	"parley/assembly/turn"
	"parley/assembly/workstream"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// setup is one loaded configuration with its accounts and agents. It does not change after
// it became current.
type setup struct {
	config   *config.Config
	at       time.Time           // when the configuration was read
	accounts map[string]*account // by workspace id
	agents   map[string]agent
}

// account is a configured workspace with its adapter.
type account struct {
	config.Workspace
	platform adapters.Platform
	adapter  adapters.Adapter
	names    *adapters.Names
	// backfill reads missed messages; nil if the adapter cannot read any.
	backfill *backfill.Workspace
	links    *links
	hello    sync.Once          // sayHello
	stop     context.CancelFunc // nil before the adapter is started
}

// web returns the workspaces of our own API.
func (s *setup) web() (list []access.Workspace) {
	for id, a := range s.accounts {
		if adapter, ok := a.adapter.(*web.Adapter); ok {
			list = append(list, access.Workspace{ID: id, Config: adapter.Access(), Agents: agentsOf(&a.Workspace)})
		}
	}
	return list
}

// agentsOf returns the ids of the agents of a workspace: its own one, and those of its channels.
func agentsOf(w *config.Workspace) []string {
	var others []string
	for _, s := range w.Channels {
		if s.Agent != "" && s.Agent != w.Agent {
			others = append(others, s.Agent)
		}
	}
	slices.Sort(others)
	return append([]string{w.Agent}, slices.Compact(others)...)
}

// heir is an adapter that continues the paces of the workspace's previous adapter, because the
// platform counts the calls of both together.
type heir interface{ Inherit(old adapters.Adapter) }

// agent is a configured agent, ready to be asked.
type agent struct {
	config.Agent
	turn.Profile
	servers []*toolserver.Client // whose tools it may call
}

// configure makes a setup from a configuration and makes it current. Workspaces and agents
// without changes keep their adapters and clients. An error means that the setup did not
// become current, so nothing may fail afterwards.
func (d *Daemon) configure(ctx context.Context, c *config.Config) error {
	before := d.current.Load()
	if before == nil {
		before = &setup{}
	}
	if err := admitLocal(c); err != nil {
		return err
	}
	next := &setup{config: c, at: d.now().UTC(), accounts: map[string]*account{}, agents: map[string]agent{}}
	for _, w := range c.Workspaces {
		a, err := d.takeOver(ctx, before.accounts[w.ID], w)
		if err != nil {
			return err
		}
		next.accounts[w.ID] = a
	}
	for _, a := range c.Agents {
		next.agents[a.ID] = d.agent(before.agents[a.ID], a)
	}
	if err := d.journal.Places.Configured(ctx, slices.Collect(maps.Keys(next.accounts))); err != nil {
		return err
	}
	if err := d.ingest.Configure(ctx, ingestWorkspaces(next)); err != nil {
		return err
	}
	for _, w := range c.Workspaces {
		if err := d.schedules.Configure(ctx, w.ID, w.TimeZone, w.Schedules); err != nil {
			return err
		}
	}
	d.current.Store(next)
	for id, a := range before.agents {
		if _, kept := next.agents[id]; !kept {
			a.close()
		}
	}
	if d.logging != nil {
		d.logging(c.Log)
	}
	for _, w := range c.Warnings {
		d.log.Warn("the configuration has a warning", "warning", w.String())
	}
	d.metrics.forget(before, next)
	d.metrics.configured(true)
	d.assignOrphans(ctx)
	return nil
}

// takeOver keeps the adapter of a workspace whose account has not changed, unless the platform has
// refused it: the operator may have resolved that on the platform.
func (d *Daemon) takeOver(ctx context.Context, old *account, w config.Workspace) (*account, error) {
	a := &account{Workspace: w, platform: d.platforms[w.Platform], links: &links{states: map[string]adapters.Status{}}}
	if old != nil && old.Platform == w.Platform && reflect.DeepEqual(old.Config, w.Config) && !old.links.refused() {
		a.adapter, a.names, a.backfill, a.stop, a.links = old.adapter, old.names, old.backfill, old.stop, old.links
		return a, nil
	}
	a.adapter = a.platform.New(w.ID, w.Config)
	if heir, ok := a.adapter.(heir); ok && old != nil {
		heir.Inherit(old.adapter)
	}
	if m, ok := a.adapter.(adapters.Metered); ok {
		m.UseMeter(d.metrics.meter(w.ID))
	}
	if s, ok := a.adapter.(adapters.Stateful); ok {
		s.UseState(d.journal.Places.AdapterState(w.ID))
	}
	namer, _ := a.adapter.(adapters.Namer)
	a.names = adapters.NewNames(namer)
	var err error
	a.backfill, err = d.newBackfill(ctx, a)
	return a, err
}

// agent returns the client of a configured agent: the old one if its settings are the same.
func (d *Daemon) agent(old agent, c config.Agent) agent {
	if old.Profile.Agent != nil && reflect.DeepEqual(old.Agent, c) {
		return old
	}
	kind, _ := config.Kind(c.Kind) // the configuration is checked
	bounds := c.Config.Bounds()
	old.close()
	return agent{Agent: c, servers: d.toolServers(c.Config), Profile: turn.Profile{
		ID: c.ID, Timeout: bounds.Timeout, MaxBytes: bounds.MaxBytes, AnswerWithin: bounds.AnswerWithin, Show: c.Show, Files: c.Files, QuietReply: c.QuietReply, ImageHosts: c.ImageHosts, Agent: kind.New(c.Config, agentFiles{d.files, d.journal, d.log}),
	}}
}

// approvers returns the users of a platform who may answer the agent's approvals; empty for
// every admitted one.
func (a agent) approvers(platform adapters.Platform) (ids []string) {
	if a.Config == nil {
		return nil
	}
	for _, id := range a.Config.Bounds().Approvers {
		ids = append(ids, platform.KnownPerson(id))
	}
	return ids
}

// close ends the sessions at the servers whose tools the agent may call.
func (a agent) close() {
	for _, server := range a.servers {
		server.Close()
	}
}

// slots returns the maximum number of concurrent runs of the agent.
func (a agent) slots() int { return a.Config.Bounds().MaxConcurrent }

// ingestWorkspaces returns the workspaces of a setup in the form that ingest needs.
func ingestWorkspaces(s *setup) []ingest.Workspace {
	var list []ingest.Workspace
	for _, a := range s.accounts {
		w := ingest.Workspace{
			ID: a.ID, Platform: a.Platform, Senders: a.platform.Namespace(), Normalizer: a.adapter, Names: a.names,
			Settings: func(channel, parent string) ingest.Settings {
				return ingestSettings(&a.Workspace, s.agents, a.platform, channel, parent)
			},
		}
		if a.platform.Self != nil {
			w.Introduce = a.learnApp
		}
		if a.backfill != nil {
			w.Backfill = a.backfill
		}
		w.Context, _ = a.adapter.(adapters.ContextReader)
		w.Quoted, _ = a.adapter.(adapters.QuotedReader)
		list = append(list, w)
	}
	return list
}

// learnApp takes our app's id from a verified payload for our own bot, if the platform did
// not report it.
func (a *account) learnApp(envelope event.Envelope, known event.Self) event.Self {
	if known.AppID != "" || known.TeamID == "" {
		return known
	}
	if self, ok := a.platform.Self(envelope); ok && self.TeamID == known.TeamID && self.UserID == known.UserID {
		known.AppID = self.AppID
	}
	return known
}

// ingestSettings returns the settings of a channel in the form that ingest needs.
func ingestSettings(w *config.Workspace, agents map[string]agent, platform adapters.Platform, channel, parent string) ingest.Settings {
	s := w.Channel(channel, parent)
	settings := ingest.Settings{
		Agent: s.Agent, Policy: s.Policy, Coalesce: s.Turns.Coalesce, CoalesceMax: s.Turns.CoalesceMax, LateAge: w.Backfill.MaxAge,
		Limits: s.Limits, WorkspaceLimits: w.Limits, Commands: w.Commands,
		Approvers: func(id string) []string { return agents[id].approvers(platform) },
	}
	settings.HasAgent, settings.API = func(agent string) bool { return slices.Contains(agentsOf(w), agent) }, platform.API
	if platform.API { // a token admits its holder, also a bot
		settings.KeepMetadata, settings.Policy.BotMessages = true, ingest.BotsRun
		settings.Asks = settings.HasAgent
	}
	return settings
}

// turnSettings returns the settings of a run's channel; the defaults for a workspace that is not
// configured any more.
func (d *Daemon) turnSettings(run *runs.Run) turn.Settings {
	a := d.current.Load().accounts[run.Workspace]
	if a == nil {
		return defaultSettings(run)
	}
	s := settingsOf(&a.Workspace, run)
	s.API, s.KeepInputs = a.platform.API, d.current.Load().config.Retention.Inputs > 0
	return s
}

// settingsOf returns the settings of a run's channel in its workspace.
func settingsOf(w *config.Workspace, run *runs.Run) turn.Settings {
	return turn.Settings{Config: w.Channel(run.Channel, run.Parent).Turns, Window: w.Context, MaxConcurrent: w.MaxConcurrent, TimeZone: w.Location()}
}

// defaultSettings returns the settings of a run whose workspace is not configured.
func defaultSettings(run *runs.Run) turn.Settings {
	w := config.NewWorkspace(run.Workspace, "", "")
	return settingsOf(&w, run)
}

// tokenName returns the name behind a token in the input of a run, such as "<@U06STGBF4Q0>".
func (d *Daemon) tokenName(ctx context.Context, run *runs.Run, token string) (string, bool) {
	a := d.current.Load().accounts[run.Workspace]
	if a == nil {
		return "", false
	}
	if id, isUser := strings.CutPrefix(token, "<@"); isUser && !strings.HasPrefix(id, "&") {
		found, known := a.names.User(ctx, strings.TrimSuffix(id, ">"))
		return found.DisplayName, known
	}
	return a.names.Mention(ctx, cmp.Or(run.Parent, run.Channel), token)
}

// placeOf returns the names of the place of a run's channel.
func (d *Daemon) placeOf(ctx context.Context, run *runs.Run) (event.Place, bool) {
	a := d.current.Load().accounts[run.Workspace]
	if a == nil {
		return event.Place{}, false
	}
	return a.names.Place(ctx, run.Channel)
}

// channelName returns the name of a channel, as the platform tells those who are in it.
func (d *Daemon) channelName(ctx context.Context, workspace, channel string) (string, bool) {
	a := d.current.Load().accounts[workspace]
	if a == nil {
		return "", false
	}
	return a.names.Mention(ctx, channel, "<#"+channel+">")
}

// self returns the account of a run's workspace.
func (d *Daemon) self(run *runs.Run) event.Self { return d.ingest.Self(run.Platform, run.Workspace) }

func (d *Daemon) profile(id string) (turn.Profile, bool) {
	a, ok := d.current.Load().agents[id]
	return a.Profile, ok
}

// workstreamConfig returns the setting of an agent that may launch workstreams. It leaves out agents that are not
// configured.
func (d *Daemon) workstreamConfig(agent string) (workstream.Config, bool) {
	agents := d.current.Load().agents
	a, ok := agents[agent]
	config := a.Workstreams
	config.Agents = slices.DeleteFunc(slices.Clone(config.Agents), func(id string) bool {
		_, known := agents[id]
		return !known
	})
	return config, ok
}

// serves returns the ids of the configured workspaces.
func (d *Daemon) serves() []string { return slices.Collect(maps.Keys(d.current.Load().accounts)) }

// timeZone returns the name of the time zone of a workspace; empty for UTC.
func (d *Daemon) timeZone(workspace string) string {
	if a := d.current.Load().accounts[workspace]; a != nil {
		return a.TimeZone
	}
	return ""
}

// shows reports whether people of a workspace see some messages of an agent, by a name of turn.Shown.
func (d *Daemon) shows(workspace, agent, messages string) bool {
	s := d.current.Load()
	if s == nil || s.accounts[workspace] == nil {
		return false
	}
	sender, ok := s.accounts[workspace].adapter.(adapters.Sender)
	show := s.agents[agent].Profile.Show
	if show == nil {
		_, edits := sender.(adapters.Editor)
		show = turn.DefaultShow(edits)
	}
	return ok && slices.Contains(show, messages)
}

// rows returns the kinds of rows of the runs of a workspace.
func (d *Daemon) rows(workspace string) []string {
	if s := d.current.Load(); s != nil {
		for _, w := range s.config.Workspaces {
			if w.ID == workspace {
				return w.Rows
			}
		}
	}
	return nil
}

// hookOf returns the address of the program with a token, workspace/token id.
func (d *Daemon) hookOf(by string) (deliver.Hook, bool) {
	workspace, id, _ := strings.Cut(by, "/")
	to, ok := d.access(workspace).DeliverOf(id)
	return deliver.Hook(to), ok
}

// callerOf returns the program that sends messages of a web workspace in its own name, as hookOf takes it.
func (d *Daemon) callerOf(workspace, sender string) (by string, ok bool) {
	id, ok := d.access(workspace).DeliversTo(workspace, sender)
	return workspace + "/" + id, ok
}

// access returns the tokens of a web workspace; none for another one.
func (d *Daemon) access(workspace string) (c access.Config) {
	if a := d.current.Load().accounts[workspace]; a != nil {
		if own, ok := a.adapter.(*web.Adapter); ok {
			return own.Access()
		}
	}
	return c
}

// platform returns the platform to which a workspace's deliveries go.
func (d *Daemon) platform(workspace string) (deliver.Platform, bool) {
	a := d.current.Load().accounts[workspace]
	if a == nil {
		return deliver.Platform{}, false
	}
	sender, _ := a.adapter.(adapters.Sender)
	page := ""
	if a.platform.Name == event.Web {
		page = d.publicURL() + "/chat?thread="
	}
	return deliver.Platform{
		Page:   page,
		Sender: sender, Limits: a.adapter.Limits(),
		Unknown: func(d *outbox.Delivery) string { return a.Channel(d.Channel, d.Parent).Turns.Unknown },
		Shows:   func(agent, messages string) bool { return d.shows(workspace, agent, messages) },
		Of:      a.platform, Agent: func(channel string) string { return a.Channel(channel, "").Agent },
	}, true
}
