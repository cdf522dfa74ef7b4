// Package web implements the workspaces of Parley's own HTTP API.
package web

import (
	"context"

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/adapters/web/payload"
	"parley/ingest/event"
)

// Adapter is the adapter of a workspace on Parley's own HTTP API.
type Adapter struct {
	payload.Normalizer
	config access.Config
}

var _ adapters.Adapter = (*Adapter)(nil)

// Platform describes Parley's own HTTP API.
func Platform() adapters.Platform {
	return adapters.Platform{
		Name: event.Web, Title: "the HTTP API", Config: func() adapters.Config { return new(access.DefaultConfig()) },
		New:        func(_ string, c adapters.Config) adapters.Adapter { return &Adapter{config: *c.(*access.Config)} },
		Normalizer: payload.Normalizer{}, Recorded: payload.Stamp, Draft: payload.Draft, API: true,
	}
}

// Limits implements adapters.Adapter. The adapter sends nothing, because clients read the
// replies.
func (*Adapter) Limits() adapters.Limits { return adapters.Limits{} }

// Access returns the settings of the workspace's callers.
func (a *Adapter) Access() access.Config { return a.config }

var _ adapters.Checker = (*Adapter)(nil)

// Check implements adapters.Checker: it reads the keys of the issuer of signed tokens.
func (a *Adapter) Check(ctx context.Context, _ adapters.Wants) ([]adapters.Finding, error) {
	return a.config.JWT.Check(ctx)
}
