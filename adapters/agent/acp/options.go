package acp

import (
	"context"
	"encoding/json"
	"slices"
)

// The names of options that people may choose in a thread.
const (
	modeOption  = "mode"
	modelOption = "model"
)

// offered has the settings that a program offers for a session: configOptions, or the modes and models of older programs.
type offered struct {
	ConfigOptions []json.RawMessage `json:"configOptions"`
	Modes         *struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID   string `json:"id"`
			Name string `json:"name"`
		} `json:"availableModes"`
	} `json:"modes"`
	Models *struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID   string `json:"modelId"`
			Name string `json:"name"`
		} `json:"availableModels"`
	} `json:"models"`
}

// options are the settings that the session of a process offers, by their names.
type options map[string]*setting

// setting is an option with its values.
type setting struct {
	method  string // that sets it
	id      string // of a config option
	current string
	values  []value
}

type value struct{ ID, Name string }

// maxValues bounds the values of an option.
const maxValues = 100

// options reads the offered settings. A config option counts by its category, and before the modes and models.
func (o offered) options() options {
	all := options{}
	for _, raw := range o.ConfigOptions {
		var c struct {
			ID       string            `json:"id"`
			Type     string            `json:"type"`
			Category string            `json:"category"`
			Current  string            `json:"currentValue"`
			Options  []json.RawMessage `json:"options"`
		}
		if json.Unmarshal(raw, &c) != nil || c.Type != "select" || c.Category != modeOption && c.Category != modelOption || all[c.Category] != nil {
			continue
		}
		s := &setting{method: "session/set_config_option", id: c.ID, current: c.Current}
		s.add(c.Options)
		all[c.Category] = s
	}
	if o.Modes != nil && all[modeOption] == nil {
		s := &setting{method: "session/set_mode", current: o.Modes.Current}
		for _, m := range o.Modes.Available {
			s.value(m.ID, m.Name)
		}
		all[modeOption] = s
	}
	if o.Models != nil && all[modelOption] == nil {
		s := &setting{method: "session/set_model", current: o.Models.Current}
		for _, m := range o.Models.Available {
			s.value(m.ID, m.Name)
		}
		all[modelOption] = s
	}
	return all
}

// add adds the values of a config option. Some programs group them.
func (s *setting) add(list []json.RawMessage) {
	for _, raw := range list {
		var v struct {
			Value   string            `json:"value"`
			Name    string            `json:"name"`
			Options []json.RawMessage `json:"options"`
		}
		if json.Unmarshal(raw, &v) != nil {
			continue
		}
		if v.Options != nil {
			for _, inner := range v.Options {
				s.add([]json.RawMessage{inner})
			}
			continue
		}
		s.value(v.Value, v.Name)
	}
}

func (s *setting) value(id, name string) {
	if id == "" || len(id) > maxTitle || len(s.values) >= maxValues {
		return
	}
	s.values = append(s.values, value{id, plain(name, 80)})
}

// set notes that an option has a value.
func (o options) set(name, value string) {
	if s := o[name]; s != nil && value != "" {
		s.current = value
	}
}

// choose sets the options that people have chosen in the thread.
func (r *run) choose(ctx context.Context) error {
	for _, name := range []string{modeOption, modelOption} {
		s, chosen := r.options[name], ""
		if s == nil || chosen == "" || chosen == s.current || !slices.ContainsFunc(s.values, func(v value) bool { return v.ID == chosen }) {
			continue
		}
	}
	return nil
}
