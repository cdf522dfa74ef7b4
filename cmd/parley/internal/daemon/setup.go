package daemon

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"parley/adapters"
	"parley/adapters/agent/echo"
	"parley/adapters/agent/openai"
	"parley/adapters/backfill"
	"parley/adapters/bluebubbles"
	"parley/adapters/deliver"
	"parley/adapters/discord"
	"parley/adapters/slack"
	"parley/adapters/web"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
)

// setup is one loaded configuration with its accounts and agents. It does not change after
// it became current.
type setup struct {
	config   *config.Config
	accounts map[string]*account // by workspace id
	agents   map[string]agent
}

// account is a configured workspace with its adapter.
type account struct {
	config.Workspace
	adapter adapters.Adapter
	names   *adapters.Names
	// backfill reads missed messages; nil if the adapter cannot read any.
	backfill *backfill.Workspace
	status   atomic.Pointer[adapters.Status]
	hello    sync.Once          // sayHello
	stop     context.CancelFunc // nil before the adapter is started
}

// heir is an adapter that continues the paces of the workspace's previous adapter, because the
// platform counts the calls of both together.
type heir interface{ Inherit(old adapters.Adapter) }

// agent is a configured agent, ready to be asked.
type agent struct {
	config.Agent
	turn.Profile
}

// Platforms returns the constructor of each platform's adapter. A new platform is a line
// here.
func Platforms() map[event.Platform]func(config.Workspace) adapters.Adapter {
	return map[event.Platform]func(config.Workspace) adapters.Adapter{
		event.Slack:       func(w config.Workspace) adapters.Adapter { return slack.New(w.ID, *w.Slack) },
		event.Discord:     func(w config.Workspace) adapters.Adapter { return recorded{discord.Normalizer{}, w.Platform} },
		event.BlueBubbles: func(w config.Workspace) adapters.Adapter { return recorded{bluebubbles.Normalizer{}, w.Platform} },
		event.Web:         func(w config.Workspace) adapters.Adapter { return web.New(w.ID, *w.Web, w.Local) },
	}
}

// configure makes a setup from a configuration and makes it current. Workspaces and agents
// without changes keep their adapters and clients. An error means that the setup did not
// become current, so nothing may fail afterwards.
func (d *Daemon) configure(ctx context.Context, c *config.Config) error {
	before := d.current.Load()
	if before == nil {
		before = &setup{}
	}
	next := &setup{config: c, accounts: map[string]*account{}, agents: map[string]agent{}}
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
	if err := d.journal.Configured(ctx, slices.Collect(maps.Keys(next.accounts))); err != nil {
		return err
	}
	if err := d.ingest.Configure(ctx, ingestWorkspaces(next)); err != nil {
		return err
	}
	d.current.Store(next)
	if d.level != nil {
		d.level.Set(c.Log.Severity())
	}
	d.metrics.forget(before, next)
	d.assignOrphans(ctx)
	return nil
}

// takeOver keeps the adapter of a workspace whose account has not changed.
func (d *Daemon) takeOver(ctx context.Context, old *account, w config.Workspace) (*account, error) {
	a := &account{Workspace: w}
	if old != nil && sameAccount(old.Workspace, w) {
		a.adapter, a.names, a.backfill, a.stop = old.adapter, old.names, old.backfill, old.stop
		a.status.Store(old.status.Load())
		return a, nil
	}
	a.adapter = d.platforms[w.Platform](w)
	if heir, ok := a.adapter.(heir); ok && old != nil {
		heir.Inherit(old.adapter)
	}
	namer, _ := a.adapter.(adapters.Namer)
	a.names = adapters.NewNames(namer)
	var err error
	a.backfill, err = d.newBackfill(ctx, a)
	return a, err
}

// sameAccount reports whether two configurations of a workspace can share an adapter.
func sameAccount(a, b config.Workspace) bool {
	return a.Platform == b.Platform && a.Local == b.Local && reflect.DeepEqual(
		[]any{a.Slack, a.Discord, a.BlueBubbles, a.Web}, []any{b.Slack, b.Discord, b.BlueBubbles, b.Web})
}

// echoConcurrent is the number of runs of the echo agent at the same time. They wait only
// for commits.
const echoConcurrent = 256

// agent returns the client of a configured agent: the old one if its settings are the same.
func (d *Daemon) agent(old agent, c config.Agent) agent {
	if old.Profile.Agent != nil && reflect.DeepEqual(old.Agent, c) {
		return old
	}
	a := agent{Agent: c, Profile: turn.Profile{ID: c.ID, Timeout: c.OpenAI.Timeout, MaxBytes: c.OpenAI.MaxBytes}}
	if c.Kind == config.KindOpenAI {
		a.Profile.Agent = openai.New(c.OpenAI, agentFiles{d.files, d.journal, d.log}, http.DefaultTransport)
		return a
	}
	bounds := openai.DefaultConfig()
	a.Profile.Agent, a.Profile.Timeout, a.Profile.MaxBytes = echo.Agent{}, bounds.Timeout, bounds.MaxBytes
	return a
}

// slots returns the maximum number of runs of the agent at the same time.
func (a agent) slots() int {
	if a.Kind == config.KindOpenAI {
		return a.OpenAI.MaxConcurrent
	}
	return echoConcurrent
}

// ingestWorkspaces returns the workspaces of a setup in the form that ingest needs.
func ingestWorkspaces(s *setup) []ingest.Workspace {
	var list []ingest.Workspace
	for _, a := range s.accounts {
		w := ingest.Workspace{
			ID: a.ID, Platform: a.Platform, Normalizer: a.adapter, Names: a.names,
			Settings: func(channel string) ingest.Settings { return ingestSettings(&a.Workspace, channel) },
		}
		if a.Platform == event.Slack {
			w.Introduce = learnApp
		}
		if a.backfill != nil {
			w.Backfill = a.backfill
		}
		w.Context, _ = a.adapter.(adapters.ContextReader)
		list = append(list, w)
	}
	return list
}

// learnApp takes a Slack app's id from a verified event of our own team, because auth.test
// does not return it.
func learnApp(envelope event.Envelope, known event.Self) event.Self {
	if known.AppID != "" || known.TeamID == "" {
		return known
	}
	if self, ok := slack.SelfOf(envelope); ok && self.TeamID == known.TeamID {
		known.AppID = self.AppID
	}
	return known
}

// ingestSettings returns the settings of a channel in the form that ingest needs.
func ingestSettings(w *config.Workspace, channel string) ingest.Settings {
	s := w.Channel(channel)
	settings := ingest.Settings{
		Agent: s.Agent, Policy: s.Policy, Coalesce: s.Turns.Coalesce, CoalesceMax: s.Turns.CoalesceMax, LateAge: w.Backfill.MaxAge,
	}
	if w.Platform == event.Web { // a token admits its holder, also a bot
		settings.KeepMetadata, settings.Policy.AllowBotMessages = true, true
	}
	return settings
}

// turnSettings returns the settings of a channel's turns; the defaults for a workspace that
// is not configured any more.
func (d *Daemon) turnSettings(workspace, channel string) turn.Settings {
	a := d.current.Load().accounts[workspace]
	if a == nil {
		w := config.NewWorkspace(workspace, "", "")
		return turn.Settings{Config: w.Turns, Window: w.Context}
	}
	return turn.Settings{Config: a.Channel(channel).Turns, Window: a.Context}
}

func (d *Daemon) profile(id string) (turn.Profile, bool) {
	a, ok := d.current.Load().agents[id]
	return a.Profile, ok
}

// platform returns the platform to which a workspace's deliveries go.
func (d *Daemon) platform(workspace string) (deliver.Platform, bool) {
	a := d.current.Load().accounts[workspace]
	if a == nil {
		return deliver.Platform{}, false
	}
	sender, _ := a.adapter.(adapters.Sender)
	return deliver.Platform{
		Sender: sender, Limits: a.adapter.Limits(),
		Unknown: func(channel string) string { return a.Channel(channel).Turns.Unknown },
	}, true
}
