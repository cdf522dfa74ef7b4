package console

import (
	"fmt"
	"slices"

	"parley/cmd/parley/internal/operator"
	"parley/config"
)

// pageTable lists all pages.
var pageTable = []page{
	{pattern: "/{$}", name: "overview", follows: true, read: overview},
	{pattern: "/workspaces/{id}", name: "workspace", follows: true, form: true, read: workspace},
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
	{pattern: "/schedules", name: "schedules", follows: true, read: schedules},
	{pattern: "/audit", name: "audit", follows: true, read: actions},
}

// operations lists everything that a page can do.
var operations = []operation{
	{pattern: "/dead/{id}/try", do: tryLetter},
	{pattern: "/dead/{id}/retry", do: retryLetter},
	{pattern: "/dead/{id}/discard", do: discardLetter},
	{pattern: "/approvals/{id}/answer", back: "/approvals", do: answerQuestion},
	{pattern: "/schedules/{workspace}/{id}/run", back: "/schedules", do: runSchedule},
	{pattern: "/schedules/{workspace}/{id}/pause", back: "/schedules", do: pauseSchedule},
	{pattern: "/schedules/{workspace}/{id}/resume", back: "/schedules", do: resumeSchedule},
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

// agentRow is an agent with the place of its settings.
type agentRow struct {
	operator.AgentStatus
	Place string // file:line; empty for a default
}

func agents(s *operator.Service, r request) (string, any, error) {
	status, err := s.Status(r.Context())
	rows := make([]agentRow, len(status.Agents))
	main := s.Config().Main()
	for i, a := range status.Agents {
		rows[i].AgentStatus = a
		at := slices.IndexFunc(main, func(set config.Setting) bool { return set.Key == fmt.Sprintf("agents[%d].id", i) })
		if at >= 0 && main[at].File != "" {
			rows[i].Place = fmt.Sprintf("%s:%d", main[at].File, main[at].Line)
		}
	}
	return "Agents", rows, err
}

func actions(s *operator.Service, r request) (string, any, error) {
	list, err := s.Audit(r.Context(), r.page())
	return "Audit", struct {
		Items []operator.Action
		Next  string
	}{list.Items, r.next(list.Next)}, err
}
