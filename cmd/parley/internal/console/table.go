package console

import (
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/storage"
)

// pageTable lists all pages.
var pageTable = []page{
	{pattern: "/{$}", name: "overview", follows: true, read: overview},
	{pattern: "/workspaces/{id}", name: "workspace", follows: true, read: workspace},
	{pattern: "/threads", name: "threads", follows: true, read: threadList},
	{pattern: "/threads/{id}", name: "thread", follows: true, read: thread},
	{pattern: "/why", name: "why", read: why},
	{pattern: "/runs", name: "runs", follows: true, read: runList},
	{pattern: "/runs/{id}", name: "run", follows: true, read: run},
	{pattern: "/approvals", name: "approvals", follows: true, read: questions},
	{pattern: "/try", name: "try", form: true, read: try},
	{pattern: "/log", name: "log", follows: true, read: logPage},
	{pattern: "/deliveries", name: "deliveries", follows: true, read: deliveries},
	{pattern: "/deliveries/{id}", name: "delivery", follows: true, read: delivery},
	{pattern: "/dead", name: "dead", follows: true, read: letters},
	{pattern: "/dead/{id}", name: "letter", follows: true, read: letter},
	{pattern: "/agents", name: "agents", follows: true, read: agents},
	{pattern: "/audit", name: "audit", follows: true, read: actions},
}

// operations lists everything that a page can do.
var operations = []operation{
	{pattern: "/dead/{id}/try", do: tryLetter},
	{pattern: "/dead/{id}/retry", do: retryLetter},
	{pattern: "/dead/{id}/discard", do: discardLetter},
	{pattern: "/runs/{id}/retry", do: retryRun},
	{pattern: "/runs/{id}/stop", do: stopRun},
	{pattern: "/deliveries/{id}/resend", do: resend},
	{pattern: "/deliveries/{id}/confirm", do: confirm},
	{pattern: "/deliveries/{id}/drop", do: drop},
}

// next returns the address of the page after the one of a request; empty if there is none. It keeps
// the filters.
func (r request) next(before *string) string {
	if before == nil {
		return ""
	}
	query := r.URL.Query()
	query.Set("before", *before)
	return r.URL.Path + "?" + query.Encode()
}

// page returns the bounds of a list.
func (r request) page() operator.Page {
	return operator.Page{Before: r.query("before"), Limit: rows}
}

// rows is the number of rows of a list: so many are less than 60 KB.
const rows = 50

func overview(s *operator.Service, r request) (string, any, error) {
	status, err := s.Status(r.Context())
	return "Overview", status, err
}

func agents(s *operator.Service, r request) (string, any, error) {
	status, err := s.Status(r.Context())
	return "Agents", status.Agents, err
}

func workspace(s *operator.Service, r request) (string, any, error) {
	id := r.PathValue("id")
	status, err := s.Status(r.Context())
	if err != nil {
		return "", nil, err
	}
	for _, w := range status.Workspaces {
		if w.ID == id {
			return "Workspace " + id, w, nil
		}
	}
	return "", nil, storage.ErrNotFound
}

func actions(s *operator.Service, r request) (string, any, error) {
	list, err := s.Audit(r.Context(), r.page())
	return "Audit", struct {
		Items []operator.Action
		Next  string
	}{list.Items, r.next(list.Next)}, err
}
