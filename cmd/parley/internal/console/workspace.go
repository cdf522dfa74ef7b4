package console

import (
	"net/http"
	"strings"
	"time"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/journal/storage"
)

// workspaceView is the data of the page of one workspace.
type workspaceView struct {
	operator.WorkspaceStatus
	May bool
	// Set are the settings that a file has, ByChannel those of the entries of channels, and Defaults the others.
	Set, Defaults []config.Setting
	ByChannel     []channelSettings
	Heard         time.Time // every message up to then is recorded or in a gap
	Gaps          []operator.WorkspaceGap
	Check         *operator.WorkspaceCheck // nil before the platform was asked
	// Names are those of the channels of the page; one whose name is not known has none.
	Names map[string]string
}

// channelSettings are the settings of one channel that differ from those of the workspace.
type channelSettings struct {
	ID       string
	Settings []config.Setting
}

func workspace(s *operator.Service, r request) (string, any, error) {
	id := r.PathValue("id")
	status, err := s.Status(r.Context())
	if err != nil {
		return "", nil, err
	}
	for _, w := range status.Workspaces {
		if w.ID != id {
			continue
		}
		v := workspaceView{WorkspaceStatus: w, May: r.isOperator()}
		v.settings(s.Config().Effective(id))
		if v.Heard, v.Gaps, err = s.WorkspaceGaps(r.Context(), id); err != nil {
			return "", nil, err
		}
		if r.Method == http.MethodPost {
			err = v.check(s, r)
		}
		v.name(s, r)
		return "Workspace " + id, v, err
	}
	return "", nil, storage.ErrNotFound
}

// name finds the names of the channels.
func (v *workspaceView) name(s *operator.Service, r request) {
	name, end := s.ChannelNames(r.Context(), r.by)
	defer end()
	v.Names = map[string]string{}
	add := func(id string) { v.Names[id] = name(v.ID, id, false) }
	for _, c := range v.ByChannel {
		add(c.ID)
	}
	for _, g := range v.Gaps {
		add(g.Channel)
	}
	if v.Check != nil {
		for _, c := range v.Check.Channels {
			add(c.ID)
		}
	}
}

// check asks the platform. Each check is a call of its API, so it needs the role operator.
func (v *workspaceView) check(s *operator.Service, r request) error {
	if !v.May {
		return needsOperator(r.by)
	}
	made, err := s.CheckWorkspace(r.Context(), v.ID)
	v.Check = &made
	return err
}

// settings sorts the effective settings of a workspace.
func (v *workspaceView) settings(all []config.Setting) {
	for _, one := range all {
		entry, key, ofChannel := strings.Cut(one.Key, "].")
		switch {
		case ofChannel && strings.HasPrefix(entry, "channels[") && key == "id":
			v.ByChannel = append(v.ByChannel, channelSettings{ID: one.Value})
		case ofChannel && strings.HasPrefix(entry, "channels["):
			if n := len(v.ByChannel); n > 0 {
				one.Key = key
				v.ByChannel[n-1].Settings = append(v.ByChannel[n-1].Settings, one)
			}
		case one.File != "":
			v.Set = append(v.Set, one)
		default:
			v.Defaults = append(v.Defaults, one)
		}
	}
}
