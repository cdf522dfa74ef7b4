package daemon

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"
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

// setup is one generation of the configuration, with what was made of it. It is
// not changed once it is current.
type setup struct {
	config   *config.Config
	accounts map[string]*account // by workspace id
	agents   map[string]agent
}

// account is a workspace with its adapter.
type account struct {
	config.Workspace
	adapter adapters.Adapter
	names   *adapters.Names
	// backfill reads missed messages; nil if the adapter cannot read any.
	backfill *backfill.Workspace
	status   atomic.Pointer[adapters.Status]
	stop     context.CancelFunc // nil until it is started
}

// agent is a configured agent, ready to be asked.
type agent struct {
	config.Agent
	turn.Profile
}

// Platforms makes each platform's adapter. Adding a platform is a line here.
func Platforms() map[event.Platform]func(config.Workspace) adapters.Adapter {
	return map[event.Platform]func(config.Workspace) adapters.Adapter{
		event.Slack:       func(w config.Workspace) adapters.Adapter { return slack.New(w.ID, *w.Slack) },
		event.Discord:     func(w config.Workspace) adapters.Adapter { return recorded{discord.Normalizer{}, w.Platform} },
		event.BlueBubbles: func(w config.Workspace) adapters.Adapter { return recorded{bluebubbles.Normalizer{}, w.Platform} },
		event.Web:         func(w config.Workspace) adapters.Adapter { return web.New(w.ID, *w.Web, w.Local) },
	}
}

// configure makes a setup of a configuration and makes it current. What a
// workspace or an agent has not changed is taken over.
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
	if err := d.ingest.Configure(ctx, ingestWorkspaces(next)); err != nil {
		return err
	}
	if err := d.journal.Configured(ctx, slices.Collect(maps.Keys(next.accounts))); err != nil {
		return err
	}
	d.current.Store(next)
	if d.level != nil {
		d.level.Set(c.Log.Severity())
	}
	d.metrics.forget(before, next)
	return d.assignOrphans(ctx, next)
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
	namer, _ := a.adapter.(adapters.Namer)
	a.names = adapters.NewNames(namer)
	var err error
	a.backfill, err = d.newBackfill(ctx, a)
	return a, err
}

func sameAccount(a, b config.Workspace) bool {
	return a.Platform == b.Platform && a.Local == b.Local && reflect.DeepEqual(
		[]any{a.Slack, a.Discord, a.BlueBubbles, a.Web}, []any{b.Slack, b.Discord, b.BlueBubbles, b.Web})
}

// echoConcurrent is how many turns the echo agent answers at once. They wait
// for commits alone.
const echoConcurrent = 256

func (d *Daemon) agent(old agent, c config.Agent) agent {
	if old.Profile.Agent != nil && reflect.DeepEqual(old.Agent, c) {
		return old
	}
	a := agent{Agent: c, Profile: turn.Profile{ID: c.ID, Timeout: c.OpenAI.Timeout, MaxBytes: c.OpenAI.MaxBytes}}
	if c.Kind == config.KindOpenAI {
		a.Profile.Agent = openai.New(c.OpenAI, shelf{d.files, d.journal, d.log}, http.DefaultTransport)
		return a
	}
	bounds := openai.DefaultConfig()
	a.Profile.Agent, a.Profile.Timeout, a.Profile.MaxBytes = echo.Agent{}, bounds.Timeout, bounds.MaxBytes
	return a
}

// slots is how many runs of the agent go on at once.
func (a agent) slots() int {
	if a.Kind == config.KindOpenAI {
		return a.OpenAI.MaxConcurrent
	}
	return echoConcurrent
}

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

// learnApp takes a Slack app's id from an event that was verified and is of our
// own team: auth.test does not tell it.
func learnApp(envelope event.Envelope, known event.Self) event.Self {
	if known.AppID != "" || known.TeamID == "" {
		return known
	}
	if told, ok := slack.SelfOf(envelope); ok && told.TeamID == known.TeamID {
		known.AppID = told.AppID
	}
	return known
}

func ingestSettings(w *config.Workspace, channel string) ingest.Settings {
	s := w.Channel(channel)
	settings := ingest.Settings{
		Agent: s.Agent, Policy: s.Policy, Coalesce: s.Turns.Coalesce, CoalesceMax: s.Turns.CoalesceMax, LateAge: w.Backfill.MaxAge,
	}
	if w.Platform == event.Web { // who holds a token was admitted by it
		settings.KeepMetadata, settings.Policy.AllowBotMessages = true, true
	}
	return settings
}

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

// platform is a workspace's way out.
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
