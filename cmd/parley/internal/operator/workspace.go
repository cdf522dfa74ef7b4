package operator

import (
	"context"
	"slices"
	"time"

	"parley/config"
	"parley/ingest/journal/storage"
)

var workspaceRoutes = []Route{
	{Pattern: "POST workspaces/{id}/check", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		return s.CheckWorkspace(c.Context(), c.Path("id"))
	}},
}

// WorkspaceCheck has the answers of the platform about the account of a workspace.
type WorkspaceCheck struct {
	Findings []Finding `json:"findings"`
	// Channels are the channels whose messages reach the workspace; nil if the platform has no list.
	Channels []JoinedChannel `json:"channels"`
	// ChannelsError tells why there is no list; empty if there is one, or if the platform has none.
	ChannelsError string `json:"channels_error"`
}

// Finding is an answer of the platform to a check.
type Finding struct {
	State string `json:"state"` // fault, warning, note, or unknown if the platform gave no clear answer
	Key   string `json:"key"`
	Words string `json:"words"`
	File  string `json:"file"` // of the key; empty for a default
	Line  int    `json:"line"`
}

// JoinedChannel is a channel that the account is in.
type JoinedChannel struct {
	ID      string `json:"id"`
	Allowed bool   `json:"allowed"` // by policy.allow_channels
}

// The states of a finding.
const (
	FindingFault   = "fault"
	FindingWarning = "warning"
	FindingNote    = "note"
	FindingUnknown = "unknown"
)

// CheckWorkspace asks the platform of a workspace whether the account has the access that it needs, and for its channels.
func (s *Service) CheckWorkspace(ctx context.Context, id string) (WorkspaceCheck, error) {
	w := s.Config().Workspace(id)
	if w == nil {
		return WorkspaceCheck{}, storage.ErrNotFound
	}
	if err := s.needsLive("a check of a workspace"); err != nil {
		return WorkspaceCheck{}, err
	}
	made := WorkspaceCheck{Findings: s.Live.Workspaces.Check(ctx, id)}
	if made.Findings == nil {
		made.Findings = []Finding{}
	}
	for i, f := range made.Findings {
		if setting, ok := s.Config().Setting(id, f.Key); ok {
			made.Findings[i].File, made.Findings[i].Line = setting.File, setting.Line
		}
	}
	channels, err := s.Live.Workspaces.Channels(ctx, id)
	if err != nil {
		made.ChannelsError = err.Error()
	}
	for _, c := range channels {
		list := w.Channel(c).Policy.AllowChannels
		made.Channels = append(made.Channels, JoinedChannel{c, list == nil || slices.Contains(list, c)})
	}
	return made, nil
}

// WorkspaceGap is a time range in which messages may be missing.
type WorkspaceGap struct {
	Channel     string // empty for every channel
	From, Until time.Time
}

// WorkspaceGaps returns the time up to which a workspace has heard of all messages, and the gaps before that.
func (s *Service) WorkspaceGaps(ctx context.Context, id string) (heard time.Time, gaps []WorkspaceGap, err error) {
	heard, open, err := s.Journal.Threads.Gaps(ctx, id, s.Now())
	for _, g := range open {
		gaps = append(gaps, WorkspaceGap{g.Channel, g.From, g.Until})
	}
	return heard, gaps, err
}
