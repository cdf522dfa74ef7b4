package daemon

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/adapters/backfill"
	"parley/adapters/deliver"
	"parley/adapters/web"
	"parley/adapters/web/access"
	"parley/assembly/turn"
	"parley/cmd/parley/internal/doctor"
	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/pipeline"
	"parley/config"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
)

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

// accounts are the accounts of the configuration in use, and what applies to the messages of each.
type accounts struct {
	*pipeline.Pipeline
	byID atomic.Pointer[map[string]*account] // by workspace; nil before the first configuration
}

var (
	_ turn.Workspaces = (*accounts)(nil)
	_ turn.Names      = (*accounts)(nil)
)

// all returns the accounts by workspace. The caller must not change the map.
func (a *accounts) all() map[string]*account {
	if all := a.byID.Load(); all != nil {
		return *all
	}
	return nil
}

// account returns the account of a workspace; nil if that is not configured.
func (a *accounts) account(workspace string) *account { return a.all()[workspace] }

// ingestWorkspaces returns accounts with the agents of a setup in the form that ingest needs.
func ingestWorkspaces(accounts map[string]*account, setup *pipeline.Setup, log *slog.Logger) []ingest.Workspace {
	var list []ingest.Workspace
	for _, a := range accounts {
		w := ingest.Workspace{
			ID: a.ID, Platform: a.Platform, Senders: a.platform.Namespace(), Normalizer: a.adapter, Names: a.names,
			Settings: func(channel, parent string) ingest.Settings {
				return pipeline.IngestSettings(&a.Workspace, setup.Agents, a.platform, channel, parent)
			},
			AsksAboutStrangers: a.AsksAboutStrangers(),
		}
		if a.platform.Self != nil {
			w.Introduce = a.learnApp
		}
		if a.backfill != nil {
			w.Backfill = a.backfill
		}
		w.Context, _ = a.adapter.(adapters.ContextReader)
		w.Groups = a.groups(pipeline.GroupsOf(&a.Workspace, setup.Agents, a.platform), log)
		w.Quoted, _ = a.adapter.(adapters.QuotedReader)
		list = append(list, w)
	}
	return list
}

// groups returns the groups of people as the platform tells them, at least those among of; nil if there are none.
func (a *account) groups(of []string, log *slog.Logger) func(ctx context.Context, user string) []string {
	grouper, ok := a.adapter.(adapters.Grouper)
	if !ok || len(of) == 0 {
		return nil
	}
	return func(ctx context.Context, user string) []string {
		groups, err := grouper.GroupsOf(ctx, user, of)
		if err != nil && !errors.Is(err, adapters.ErrResting) { // a log line for each message would tell no more
			log.Warn("the groups of a person are not known: no group admits the person now", "workspace", a.ID, "user", user, "err", err)
		}
		return groups
	}
}

// Settings implements turn.Workspaces.
func (a *accounts) Settings(at threads.Place) turn.Settings {
	own := a.account(at.Workspace)
	if own == nil {
		return pipeline.TurnSettings(nil, at)
	}
	s := pipeline.TurnSettings(&own.Workspace, at)
	s.API, s.KeepInputs = own.platform.API, a.Setup().Config.Retention.Inputs > 0
	return s
}

// Sight implements turn.Workspaces, by the settings of the present day.
func (a *accounts) Sight(ctx context.Context, run *runs.Run) (*runs.Sight, error) {
	return a.Journal.Runs.Sight(ctx, run, runs.SightRules{Admits: a.Ingest.Admits, Reads: a.programReads})
}

// programReads reports whether a program, as event.InjectedBy names it, may read a workspace. One that is not configured any
// more may not.
func (a *accounts) programReads(by, workspace string) bool {
	home, id, _ := strings.Cut(by, "/")
	return a.access(home).Reads(id, workspace)
}

// Name implements turn.Names.
func (a *accounts) Name(ctx context.Context, run *runs.Run, token string) (string, bool) {
	own := a.account(run.Workspace)
	if own == nil {
		return "", false
	}
	if id, isUser := strings.CutPrefix(token, "<@"); isUser && !strings.HasPrefix(id, "&") {
		found, known := own.names.User(ctx, strings.TrimSuffix(id, ">"))
		return found.DisplayName, known
	}
	return own.names.Mention(ctx, cmp.Or(run.Parent, run.Channel), token)
}

// Place implements turn.Names.
func (a *accounts) Place(ctx context.Context, run *runs.Run) (event.Place, bool) {
	own := a.account(run.Workspace)
	if own == nil {
		return event.Place{}, false
	}
	return own.names.Place(ctx, run.Channel)
}

// namesOf returns the names that the platform of a workspace knows; nil if the workspace is not configured.
func (a *accounts) namesOf(workspace string) ingest.Names {
	if own := a.account(workspace); own != nil {
		return own.names
	}
	return nil
}

// channelName returns the name of a channel, as the platform tells those who are in it.
func (a *accounts) channelName(ctx context.Context, workspace, channel string) (string, bool) {
	own := a.account(workspace)
	if own == nil {
		return "", false
	}
	return own.names.Mention(ctx, channel, "<#"+channel+">")
}

// serves returns the ids of the configured workspaces.
func (a *accounts) serves() []string { return slices.Collect(maps.Keys(a.all())) }

// timeZone returns the name of the time zone of a workspace; empty for UTC.
func (a *accounts) timeZone(workspace string) string {
	if own := a.account(workspace); own != nil {
		return own.TimeZone
	}
	return ""
}

// agentOf returns the agent of a channel of a workspace; empty if that is not configured.
func (a *accounts) agentOf(workspace, channel string) string {
	own := a.account(workspace)
	if own == nil {
		return ""
	}
	return own.Channel(channel).Agent
}

// shows reports whether people of a workspace see some messages of an agent, by a name of turn.Shown.
func (a *accounts) shows(workspace, agent, messages string) bool {
	own := a.account(workspace)
	if own == nil {
		return false
	}
	sender, ok := own.adapter.(adapters.Sender)
	show := a.Setup().Agents[agent].Profile.Show
	if show == nil {
		_, edits := sender.(adapters.Editor)
		show = turn.DefaultShow(edits)
	}
	return ok && slices.Contains(show, messages)
}

// hookOf returns the address of the program with a token, workspace/token id.
func (a *accounts) hookOf(by string) (deliver.Hook, bool) {
	workspace, id, _ := strings.Cut(by, "/")
	to, ok := a.access(workspace).DeliverOf(id)
	return deliver.Hook(to), ok
}

// callerOf returns the program that sends messages of a web workspace in its own name, as hookOf takes it.
func (a *accounts) callerOf(workspace, sender string) (by string, ok bool) {
	id, ok := a.access(workspace).DeliversTo(workspace, sender)
	return workspace + "/" + id, ok
}

// access returns the tokens of a web workspace; none for another one.
func (a *accounts) access(workspace string) (c access.Config) {
	if own := a.account(workspace); own != nil {
		if adapter, ok := own.adapter.(*web.Adapter); ok {
			return adapter.Access()
		}
	}
	return c
}

// web returns the workspaces of our own API.
func (a *accounts) web() (list []access.Workspace) {
	for id, one := range a.all() {
		if adapter, ok := one.adapter.(*web.Adapter); ok {
			list = append(list, access.Workspace{ID: id, Config: adapter.Access(), Agents: pipeline.AgentsOf(&one.Workspace)})
		}
	}
	return list
}

// Posts implements figures.Workspaces. A workspace that is not configured any more counts as one with posts.
func (a *accounts) Posts(workspace string) bool {
	own := a.account(workspace)
	if own == nil {
		return true
	}
	_, posts := own.adapter.(adapters.Sender)
	return posts
}

// CountConnections implements figures.Connections.
func (a *accounts) CountConnections() map[string]map[adapters.ConnectionState]int {
	all := map[string]map[adapters.ConnectionState]int{}
	for id, one := range a.all() {
		all[id] = one.links.counts()
	}
	return all
}

// workspaces are the accounts as operators see them.
type workspaces struct {
	*accounts
	public func() string // the address of our HTTP server for platforms
}

// Status implements operator.Workspaces.
func (w workspaces) Status(workspace string) (adapters.Status, bool) {
	own := w.account(workspace)
	if own == nil {
		return adapters.Status{}, false
	}
	return own.links.status()
}

// Channels implements operator.Workspaces.
func (w workspaces) Channels(ctx context.Context, workspace string) ([]string, error) {
	own := w.account(workspace)
	if own == nil {
		return nil, nil
	}
	reader, ok := own.adapter.(adapters.Backfiller)
	if !ok {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, channelsTime)
	defer cancel()
	return reader.Channels(ctx)
}

// ChannelName implements operator.Workspaces.
func (w workspaces) ChannelName(ctx context.Context, workspace, channel string) (string, bool) {
	return w.channelName(ctx, workspace, channel)
}

// channelsTime bounds the wait for the platform's list of channels.
const channelsTime = 3 * time.Second

// Check implements operator.Workspaces.
func (w workspaces) Check(ctx context.Context, workspace string) []operator.Finding {
	return doctor.AskWorkspace(ctx, w.Setup().Config, workspace, w.public())
}
