package setup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/adapters"
	"parley/config"
)

// Asker asks a person.
type Asker interface {
	// Choose returns the index of one of the options.
	Choose(ctx context.Context, title string, options []string) (int, error)
	// Ask returns the answer to a field. A secret one is not shown.
	Ask(ctx context.Context, f adapters.Field) (string, error)
	// Say shows a text.
	Say(text string)
}

// Interview completes a plan with the answers of a person, and tries them. Without an asker, a missing
// answer without a default and a fault are errors.
type Interview struct {
	Asker Asker
	// Given returns the value that a flag or the environment has for a field of a choice; empty for none.
	Given func(choice string, f adapters.Field) string
	// Offline tries no answer.
	Offline bool
}

// Complete completes a plan whose choices are made or empty.
func (i *Interview) Complete(ctx context.Context, p *Plan, agents []Choice) error {
	where, who := "Where do people talk?", "Who answers?"
	platforms := Platforms()
	if p.Onto != nil {
		where, who = "What is added to "+config.File+"?", "Who answers there?"
		platforms[len(platforms)-1].Title = "No workspace: only an agent"
		agents = append(p.Onto.Agents(), agents...)
	}
	if err := i.choose(ctx, where, &p.Platform.Choice, platforms); err != nil {
		return err
	}
	if p.Platform.Name == "" {
		p.Workspace = ""
	} else if p.Workspace == "" {
		p.Workspace = p.Platform.ID
	}
	if p.Onto != nil && p.Platform.Name == "" {
		agents = agents[len(p.Onto.Config.Agents):]
	}
	if p.Onto != nil {
		p.Platform.Fixed = p.Onto.main()
	}
	alone := Plan{Workspace: p.Workspace, Platform: p.Platform, Agent: Part{Choice: Choice{Name: "echo"}}}
	if err := i.part(ctx, &alone.Platform, &alone); err != nil {
		return err
	}
	p.Platform = alone.Platform
	if err := i.choose(ctx, who, &p.Agent.Choice, agents); err != nil {
		return err
	}
	if p.Onto != nil && p.Agent.Name == "" {
		p.AgentID = p.Agent.ID
		return nil
	}
	if p.Onto != nil && p.AgentID == "" {
		for n := 1; p.AgentID == "" || !p.Onto.isFree(p.AgentID); n++ {
			p.AgentID = []string{agentID, p.Agent.ID}[min(n-1, 1)]
			if n > 2 {
				p.AgentID = fmt.Sprintf("%s-%d", p.Agent.ID, n-1)
			}
		}
	}
	alone = Plan{Agent: p.Agent, AgentID: p.AgentID}
	if err := i.part(ctx, &alone.Agent, &alone); err != nil {
		return err
	}
	p.Agent = alone.Agent
	return nil
}

// choose makes a choice that is not made yet.
func (i *Interview) choose(ctx context.Context, title string, c *Choice, all []Choice) error {
	if c.ID != "" {
		return nil
	}
	if i.Asker == nil {
		return errors.New(title + " Choose with --platform and --agent")
	}
	titles := make([]string, len(all))
	for n, one := range all {
		titles[n] = one.Title
	}
	n, err := i.Asker.Choose(ctx, title, titles)
	if err == nil {
		*c = all[n]
	}
	return err
}

// part asks for the fields of a part of the plan alone until a trial finds no fault, or the person keeps the
// answers.
func (i *Interview) part(ctx context.Context, part *Part, alone *Plan) error {
	if i.Asker != nil && part.Note != "" {
		i.Asker.Say(part.Note)
	}
	for again := false; ; again = true {
		if err := i.fields(ctx, part, again); err != nil || i.Offline {
			return err
		}
		found, err := alone.Try(ctx)
		if err != nil {
			return err
		}
		open := func(f Finding) bool { return f.Fault || f.Unasked && i.Asker != nil }
		if err := i.tell(found); err != nil || !slices.ContainsFunc(found, open) {
			if err == nil && i.Asker != nil && part.Name != "" && part.Name != "echo" {
				i.Asker.Say("✓ " + part.Title + " takes the answers.")
			}
			return err
		}
		switch n, err := i.Asker.Choose(ctx, "What now?", []string{"Answer again", "Keep the answers", "End without a file"}); {
		case err != nil:
			return err
		case n == 1:
			return nil
		case n == 2:
			return errors.New("nothing is written")
		}
	}
}

// tell shows the findings. If there is nobody to read them, the faults are the error.
func (i *Interview) tell(found []Finding) error {
	var faults []string
	for _, f := range found {
		text := fmt.Sprintf("%s: %s", f.Key, f.Words)
		if i.Asker != nil {
			i.Asker.Say(text)
		} else if f.Fault {
			faults = append(faults, text)
		}
	}
	if len(faults) > 0 {
		return errors.New("nothing is written:\n" + strings.Join(faults, "\n"))
	}
	return nil
}

// fields gets the value of each field: a given one, the person's, the default or a made one.
func (i *Interview) fields(ctx context.Context, part *Part, again bool) error {
	if part.Answers == nil {
		part.Answers = map[string]string{}
	}
	for _, f := range part.Fields {
		if fixed, ok := part.Fixed[f.Key]; ok && f.Block == adapters.MainFile {
			part.Answers[f.Key] = fixed
			continue
		}
		value := i.Given(part.ID, f)
		if f.Key == "model" && i.Asker != nil && part.Name == "openai" && len(f.Options) == 0 {
			f.Options = models(ctx, strings.TrimSuffix(part.Answers["base_url"], "/"), part.Answers["api_key"])
		}
		if value == "" && f.Made {
			value = cmp.Or(part.Answers[f.Key], made())
		}
		if value == "" && f.Unasked {
			value = f.Default
		}
		if value == "" || again && !f.Made && !f.Unasked && i.Asker != nil {
			var err error
			if value, err = i.ask(ctx, part.ID, f); err != nil {
				return err
			}
		}
		part.Answers[f.Key] = strings.TrimSpace(value)
	}
	return nil
}

// ask asks the person for a field, or takes its default.
func (i *Interview) ask(ctx context.Context, choice string, f adapters.Field) (string, error) {
	switch {
	case i.Asker == nil && f.Default == "" && !isOptional(f):
		return "", fmt.Errorf("%s is needed: --set %s.%s=VALUE%s", f.Title, choice, f.Key, hint(f, choice))
	case i.Asker == nil:
		return f.Default, nil
	case len(f.Options) > 0:
		n, err := i.Asker.Choose(ctx, f.Title, f.Options)
		if err != nil {
			return "", err
		}
		return f.Options[n], nil
	}
	value, err := i.Asker.Ask(ctx, f)
	return cmp.Or(strings.TrimSpace(value), f.Default), err
}

// isOptional reports whether the setting may stay unset: an endpoint may need no token, and a server no key.
func isOptional(f adapters.Field) bool {
	return f.Optional || f.Key == "token" && f.Form != "" || f.Key == "api_key"
}

// hint says where a secret is better than on the command line.
func hint(f adapters.Field, choice string) string {
	if !f.Secret {
		return ""
	}
	text := fmt.Sprintf(", or a file with --secret %s.%s=FILE", choice, f.Key)
	if f.Env != "" {
		text += ", or " + f.Env + " in the environment"
	}
	return text
}
