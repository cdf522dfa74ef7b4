package web

import (
	"slices"

	"parley/adapters/web/access"
	"parley/adapters/web/files"
	"parley/adapters/web/runs"
	"parley/adapters/web/speak"
	"parley/adapters/web/threads"
	"parley/adapters/web/tools"
)

// API serves the routes of the HTTP API.
type API struct {
	Gate    access.Gate
	Storage files.Storage
	Threads threads.API
	Runs    runs.API
	Tools   tools.API
	Speak   speak.API
}

// Routes returns the routes that name no workspace, because the caller's token does. Gate.Handler
// returns the handler of each.
func (a API) Routes() []access.Route {
	return slices.Concat(a.Threads.Routes(), a.Runs.Routes(), a.Speak.Routes(), a.Storage.Routes(), a.Tools.Routes(), a.Gate.Routes())
}
