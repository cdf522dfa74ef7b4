package operator

import (
	"cmp"
	"context"
	"os"
	"time"

	"parley/adapters"
	"parley/config"
	"parley/ingest"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/schedules"
)

var statusRoutes = []Route{
	{Pattern: "GET status", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		return s.Status(c.Context())
	}},
	{Pattern: "GET workspaces", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		st, err := s.Status(c.Context())
		return List[WorkspaceStatus]{Items: st.Workspaces}, err
	}},
	{Pattern: "GET agents", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		st, err := s.Status(c.Context())
		return List[AgentStatus]{Items: st.Agents}, err
	}},
}

// Status is the state of a daemon and its store.
type Status struct {
	Version string    `json:"version"`
	Node    string    `json:"node"` // the name of the process; empty if the daemon is stopped
	Host    string    `json:"host"`
	Running bool      `json:"running"`
	Ready   bool      `json:"ready"`   // it takes messages
	Address string    `json:"address"` // at which its HTTP server listens; empty if the daemon is stopped
	Since   time.Time `json:"since,omitzero"`
	// ConfiguredAt is when the configuration was last read.
	ConfiguredAt time.Time         `json:"configured_at,omitzero"`
	Store        StoreStatus       `json:"store"`
	Workspaces   []WorkspaceStatus `json:"workspaces"`
	Agents       []AgentStatus     `json:"agents"`
	Needs        Needs             `json:"needs"`
	Schedules    ScheduleCounts    `json:"schedules"`
	Pauses       []ingest.Pause    `json:"pauses,omitempty"`
}

// ScheduleCounts counts the schedules.
type ScheduleCounts struct {
	Total  int64 `json:"total"`
	Paused int64 `json:"paused"`
	Failed int64 `json:"failed"` // whose last tick has failed
}

// StoreStatus is the state of the store.
type StoreStatus struct {
	State  string `json:"state"` // ok, or failing if it takes no messages
	Error  string `json:"error"`
	Engine string `json:"engine"`
	Schema int64  `json:"schema"`
	Bytes  int64  `json:"bytes"`
}

// WorkspaceStatus is the state of a workspace on this node, with the numbers of its unfinished work in the store.
type WorkspaceStatus struct {
	ID          string     `json:"id"`
	Platform    string     `json:"platform"`
	State       string     `json:"state"` // of a connection, or stopped
	Error       string     `json:"error"`
	Warning     string     `json:"warning,omitempty"` // a trouble of a connection that works
	Since       time.Time  `json:"since,omitzero"`
	LastEventAt *time.Time `json:"last_event_at"` // when its last message was recorded
	Waiting     int64      `json:"waiting"`       // envelopes without a result yet
	Behind      int64      `json:"behind"`        // channels whose missed messages are still to be read
	Dead        int64      `json:"dead"`
}

// AgentStatus is the state of an agent. Running counts the runs on all nodes, the rest is of this node.
type AgentStatus struct {
	ID           string  `json:"id"`
	Kind         string  `json:"kind"`
	State        string  `json:"state"` // idle, working, failing
	Running      int64   `json:"running"`
	LastError    string  `json:"last_error"`
	FirstTokenMS float64 `json:"first_token_ms"` // of the last answer; 0 if there was none
	// Since is when it began to be well, or to fail, on this node.
	Since time.Time `json:"since,omitzero"`
	// Form says in which form its server takes requests, if it has refused the configured one.
	Form []string `json:"form,omitempty"`
}

// Needs counts what waits for an operator or an approver. Each number is at most
// listing.CountLimit.
type Needs struct {
	Dead              int64 `json:"dead"`
	UnknownDeliveries int64 `json:"unknown_deliveries"`
	FailedDeliveries  int64 `json:"failed_deliveries"`
	Approvals         int64 `json:"approvals"`
	FailedRuns        int64 `json:"failed_runs"` // within listing.FailedFor, whose messages were not asked again
	Agents            int64 `json:"agents"`      // that fail
	Workspaces        int64 `json:"workspaces"`  // that are down or refused
}

// The states of a workspace of a stopped daemon, and of an agent.
const (
	stopped = "stopped"
	idle    = "idle"
	working = "working"
	failing = "failing"
)

// Degraded reports whether a part of a running daemon does not work.
func (s *Status) Degraded() bool {
	return s.Needs.Workspaces > 0 || s.Needs.Agents > 0 || !s.Ready
}

// Broken reports whether the connections of the workspace do not work.
func (w WorkspaceStatus) Broken() bool {
	return w.State == string(adapters.Down) || w.State == string(adapters.Refused)
}

// Failing reports whether the agent's last attempt failed for a reason of the agent.
func (a AgentStatus) Failing() bool { return a.State == failing }

// Status returns the state of the daemon and its store. If the store does not answer, the counts are 0.
func (s *Service) Status(ctx context.Context) (Status, error) {
	c := s.Config()
	host, _ := os.Hostname() // a machine without a name has none to show
	st := Status{Version: s.Version, Node: s.Node, Host: host, Running: s.Live != nil, Store: StoreStatus{State: "ok", Engine: c.Store.Engine}}
	ids := s.configured()
	counts, err := s.Journal.Listing.Counts(ctx, ids)
	if err == nil {
		var n schedules.Counts
		n, err = s.Journal.Schedules.CountSchedules(ctx, ids)
		st.Schedules = ScheduleCounts(n)
	}
	if err == nil {
		facts, broken := s.Journal.Facts(ctx)
		st.Store.Schema, st.Store.Bytes, err = facts.Schema, facts.Bytes, broken
	}
	if err == nil {
		var pauses *ingest.Pauses
		if pauses, err = s.pauses(ctx); err == nil {
			st.Pauses = pauses.List()
		}
	}
	if s.Live != nil {
		st.Address, st.Since, st.ConfiguredAt = s.Live.Address, s.Live.Since, s.Live.ConfiguredAt()
		err = cmp.Or(s.Live.Store.TakesMessages(ctx), err)
		st.Ready = err == nil
	}
	if err != nil {
		st.Store.State, st.Store.Error = failing, err.Error()
	}
	st.Needs = Needs{Dead: counts.DeadLetters, UnknownDeliveries: counts.UnknownDeliveries, FailedDeliveries: counts.FailedDeliveries, Approvals: counts.Questions, FailedRuns: counts.FailedRuns}
	st.Workspaces, st.Agents = s.workspaces(c, counts), s.agents(c, counts)
	for _, w := range st.Workspaces {
		if w.Broken() {
			st.Needs.Workspaces++
		}
	}
	for _, a := range st.Agents {
		if a.Failing() {
			st.Needs.Agents++
		}
	}
	return st, nil
}

// workspaces returns the states of the configured workspaces, in their order.
func (s *Service) workspaces(c *config.Config, counts listing.Counts) []WorkspaceStatus {
	list := make([]WorkspaceStatus, len(c.Workspaces))
	for i, w := range c.Workspaces {
		n := counts.Workspaces[w.ID]
		one := WorkspaceStatus{ID: w.ID, Platform: string(w.Platform), State: stopped, Waiting: n.Waiting, Behind: n.Behind, Dead: n.DeadLetters}
		if !n.LastAt.IsZero() {
			one.LastEventAt = &n.LastAt
		}
		if s.Live != nil {
			status, known := s.Live.Workspaces.Status(w.ID)
			if !known {
				status.State = adapters.Starting
			}
			one.State, one.Error, one.Warning, one.Since = string(status.State), status.Error, status.Warning, status.Since
		}
		list[i] = one
	}
	return list
}

// agents returns the states of the configured agents, in their order.
func (s *Service) agents(c *config.Config, counts listing.Counts) []AgentStatus {
	list := make([]AgentStatus, len(c.Agents))
	for i, a := range c.Agents {
		one := AgentStatus{ID: a.ID, Kind: a.Kind, State: idle, Running: counts.Running[a.ID]}
		if one.Running > 0 {
			one.State = working
		}
		if s.Live != nil {
			health := s.Live.Agents.Agent(a.ID)
			one.LastError, one.FirstTokenMS = health.LastError, float64(health.FirstToken.Microseconds())/1000
			one.Since, one.Form = health.Since, health.Form
			if health.Failing {
				one.State = failing
			}
		}
		list[i] = one
	}
	return list
}

// Status returns the state of the daemon and its store.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return Get[Status](ctx, c, "status", nil)
}

// Workspaces returns the states of the configured workspaces.
func (c *Client) Workspaces(ctx context.Context) (List[WorkspaceStatus], error) {
	return Get[List[WorkspaceStatus]](ctx, c, "workspaces", nil)
}
