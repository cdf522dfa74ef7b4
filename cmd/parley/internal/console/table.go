package console

import (
	"fmt"
	"net/url"
	"slices"

	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/ingest/journal/strangers"
)

// pageTable lists all pages.
var pageTable = []page{
	{pattern: "/{$}", name: "overview", follows: true, read: overview},
	{pattern: "/workspaces/{id}", name: "workspace", follows: true, form: true, read: workspace},
	{pattern: "/threads", name: "threads", follows: true, read: threadList},
	{pattern: "/threads/{id}", name: "thread", follows: true, read: thread,
		missing: "The store has no thread with this UUID or key. It may be of another store, or its workspace was removed."},
	{pattern: "/search", name: "search", read: searchPage},
	{pattern: "/why", name: "why", read: why},
	{pattern: "/runs", name: "runs", follows: true, read: runList},
	{pattern: "/runs/{id}", name: "run", follows: true, read: run,
		missing: "The store has no run with this id. Runs are removed with their age (retention.runs)."},
	{pattern: "/approvals", name: "approvals", follows: true, read: questions},
	{pattern: "/try", name: "try", form: true, read: try},
	{pattern: "/log", name: "log", follows: true, read: logPage},
	{pattern: "/deliveries", name: "deliveries", follows: true, read: deliveries},
	{pattern: "/deliveries/{id}", name: "delivery", follows: true, read: delivery},
	{pattern: "/dead", name: "dead", follows: true, read: letters},
	{pattern: "/dead/{id}", name: "letter", follows: true, read: letter},
	{pattern: "/agents", name: "agents", follows: true, read: agents},
	{pattern: "/schedules", name: "schedules", follows: true, read: schedules},
	{pattern: "/use", name: "use", read: use},
	{pattern: "/people", name: "people", read: peoplePage},
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
	{pattern: "/pauses", back: "/", do: pauseScope},
	{pattern: "/pauses/end", back: "/", do: resumeScope},
	{pattern: "/people/{person}/forget", back: "/people", do: forgetPerson},
	{pattern: "/people/{person}/admit", back: "/people", do: decidePerson(strangers.Always, "is admitted")},
	{pattern: "/people/{person}/refuse", back: "/people", do: decidePerson(strangers.No, "is refused")},
	{pattern: "/people/{person}/ask", back: "/people", do: decidePerson("", "asks again with the next message")},
	{pattern: "/runs/{id}/retry", do: retryRun},
	{pattern: "/runs/{id}/stop", do: stopRun},
	{pattern: "/deliveries/{id}/resend", do: resend},
	{pattern: "/deliveries/{id}/confirm", do: confirm},
	{pattern: "/deliveries/{id}/drop", do: drop},
}

// neighbours are the addresses of the pages beside one page of a list; empty for none.
type neighbours struct{ Newest, Newer, Older string }

// mostTrail bounds the pages to which Newer leads back.
const mostTrail = 50

// beside returns the neighbours of a request's page, which keep its filters. before is the position of the older page; nil if there is none.
// The address of a page has the positions of the newer ones, from the newest on.
func (r request) beside(before *string) (n neighbours) {
	const position, trail = "before", "newer"
	address := func(query url.Values) string {
		if len(query) == 0 {
			return r.URL.Path
		}
		return r.URL.Path + "?" + query.Encode()
	}
	query := r.URL.Query()
	here, newer := query.Get(position), query[trail]
	if before != nil {
		query.Set(position, *before)
		query[trail] = append(newer[max(0, len(newer)+1-mostTrail):len(newer):len(newer)], here)
		n.Older = address(query)
	}
	if here == "" {
		return n
	}
	if query.Del(position); len(newer) > 0 {
		if at := newer[len(newer)-1]; at != "" {
			query.Set(position, at)
		}
		if query[trail] = newer[:len(newer)-1]; len(newer) == 1 {
			query.Del(trail)
		}
		n.Newer = address(query)
	}
	query.Del(position)
	query.Del(trail)
	if n.Newest = address(query); n.Newest == n.Newer {
		n.Newest = ""
	}
	return n
}

// page returns the bounds of a list.
func (r request) page() operator.Page {
	return operator.Page{Before: r.query("before"), Limit: rows}
}

// rows is the number of rows of a list: so many are less than 60 KB.
const rows = 50

// overviewPage is the data of the overview.
type overviewPage struct {
	Pause  act
	Paused []paused
	operator.Status
	Hour  operator.Hour
	Bars  []bar // of the sparkline, in a picture of 60 by sparkHeight
	Known bool  // Hour is
}

// sparkHeight is the height of the sparkline.
const sparkHeight = 20

func overview(s *operator.Service, r request) (string, any, error) {
	status, err := s.Status(r.Context())
	v := overviewPage{Status: status, Pause: pauseAct(r), Paused: pausesOf(r, status.Pauses)}
	var broken error
	if v.Hour, broken = s.LastHour(r.Context()); broken == nil {
		v.Known = true
		most := max(1, slices.Max(append([]int64{0}, v.Hour.ByMinute...)))
		for i, n := range v.Hour.ByMinute {
			if n > 0 {
				high := max(1, float64(sparkHeight)*float64(n)/float64(most))
				v.Bars = append(v.Bars, bar{X: float64(i), Y: sparkHeight - high, Width: 0.8, Height: high})
			}
		}
	}
	return "Overview", v, err
}

// bar is a rectangle of a picture.
type bar struct{ X, Y, Width, Height float64 }

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
		Next  neighbours
	}{list.Items, r.beside(list.Next)}, err
}
