package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"

	"parley/ingest/stream"
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

// choose sets the options that people have chosen in the thread, and tells them of all options. The program may change an option by itself later: a
// choice is set once in a process.
func (r *run) choose(ctx context.Context) error {
	for _, c := range r.input.Choices {
		s := r.options[c.Name]
		if s == nil || c.Chosen == "" || r.chosen[c.Name] == c.Chosen || !slices.ContainsFunc(s.values, func(v value) bool { return v.ID == c.Chosen }) {
			continue
		}
		if c.Chosen != s.current {
			if err := r.set(ctx, c.Name, s, c.Chosen); err != nil {
				return err
			}
		}
		if r.chosen == nil {
			r.chosen = map[string]string{}
		}
		r.chosen[c.Name] = c.Chosen
	}
	return r.offer()
}

// set sets an option. A program that refuses goes on with the value that it has.
func (r *run) set(ctx context.Context, name string, s *setting, to string) error {
	params := map[string]string{"sessionId": r.session}
	switch s.method {
	case "session/set_mode":
		params["modeId"] = to
	case "session/set_model":
		params["modelId"] = to
	default:
		params["configId"], params["value"] = s.id, to
	}
	var now offered
	err := r.within(ctx, r.agent.config.FirstByte, func(ctx context.Context) error { return r.call(ctx, s.method, params, &now) })
	if refused, ok := errors.AsType[*rpcError](err); ok {
		return r.answer.Say(stream.Message{Type: stream.Warning, Text: "The agent has refused the " + name + ": " + plain(refused.Error(), maxTitle)})
	}
	if err != nil {
		return r.fault(s.method, err)
	}
	if len(now.ConfigOptions) > 0 {
		r.options = now.options()
	} else {
		r.options.set(name, to)
	}
	return nil
}

// offer tells people of the options, if they have changed.
func (r *run) offer() error {
	var list []stream.Choice
	for _, name := range []string{modeOption, modelOption} {
		s := r.options[name]
		if s == nil || len(s.values) == 0 {
			continue
		}
		c := stream.Choice{Name: name, Current: s.current}
		for _, v := range s.values {
			c.Values = append(c.Values, stream.Option{ID: v.ID, Label: cmp.Or(v.Name, v.ID)})
		}
		list = append(list, c)
	}
	raw, err := json.Marshal(list)
	if err != nil || len(list) == 0 || string(raw) == r.told || r.input.Offer == nil {
		return err
	}
	if err := r.input.Offer(list); err != nil {
		return err
	}
	r.told = string(raw)
	return nil
}
