package console

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"parley/adapters/web/threads"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/card"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
)

func threadList(s *operator.Service, r request) (string, any, error) {
	f := filterOf(s, r)
	q, err := f.threads(s, r)
	if err != nil {
		return "", nil, err
	}
	list, err := s.Threads(r.Context(), r.by, q)
	return "Threads", struct {
		Items  []operator.Thread
		Filter filter
		Next   neighbours
	}{list.Items, f.with(listing.ThreadStates()), r.beside(list.Next)}, err
}

// filter are the fields with which the lists of threads, runs and messages are filtered, and the values from which to choose.
type filter struct {
	Text, Workspace, Channel, Agent, State, Since, Until string
	Workspaces, Agents, States                           []string
	// Set tells that one of the fields has a value, and More that one of those behind More filters has. Page is the list without a filter.
	Set, More bool
	Page      string
}

// filterOf returns the filter of a request.
func filterOf(s *operator.Service, r request) filter {
	f := filter{
		Text: strings.TrimSpace(r.query("q")), Workspace: r.query("workspace"), Channel: strings.TrimSpace(r.query("channel")), Agent: r.query("agent"), State: r.query("state"),
		Since: r.query("since"), Until: r.query("until"),
	}
	if r.query("failed") == "true" {
		f.State = "failed"
	}
	for _, w := range s.Config().Workspaces {
		f.Workspaces = append(f.Workspaces, w.ID)
	}
	for _, a := range s.Config().Agents {
		f.Agents = append(f.Agents, a.ID)
	}
	f.More = f.Workspace+f.Channel+f.Agent+f.Since+f.Until != ""
	f.Set, f.Page = f.More || f.Text+f.State != "", strings.TrimPrefix(r.URL.Path, "/")
	return f
}

// with returns the filter with the states from which to choose.
func (f filter) with(states []listing.ThreadState) filter {
	for _, state := range states {
		f.States = append(f.States, string(state))
	}
	return f
}

// threads returns the query for threads or their messages.
func (f filter) threads(s *operator.Service, r request) (q operator.ThreadQuery, err error) {
	q.Text, q.Channel, q.Agent, q.State, q.Before, q.Limit = f.Text, f.Channel, f.Agent, listing.ThreadState(f.State), r.query("before"), rows
	if f.Workspace != "" {
		q.Workspaces = []string{f.Workspace}
	}
	q.Since, q.Until, err = s.Times(f.Since, f.Until)
	return q, err
}

// searchView is the data of the search.
type searchView struct {
	Filter   filter
	Messages []operator.FoundMessage
	People   []operator.FoundPerson
	Next     neighbours
}

// mostPeople bounds the people of a search.
const mostPeople = 8

// searchPage leads to the message, the thread or the run that a link or an id names, and otherwise lists the messages with the words.
func searchPage(s *operator.Service, r request) (string, any, error) {
	v := searchView{Filter: filterOf(s, r)}
	text := v.Filter.Text
	if text == "" {
		return "Search", v, nil
	}
	if !strings.ContainsAny(text, " \t\n") && strings.ContainsAny(text, "0123456789") {
		switch thread, known, err := s.Known(r.Context(), text); {
		case err != nil:
			return "", nil, err
		case thread != "":
			return "", nil, elsewhere{"/threads/" + thread}
		case known, strings.Contains(text, "://"):
			return "", nil, elsewhere{"/why?" + url.Values{"ref": {text}}.Encode()}
		}
	}
	q, err := v.Filter.threads(s, r)
	if err != nil {
		return "", nil, err
	}
	list, err := s.SearchMessages(r.Context(), r.by, q)
	if err != nil {
		return "", nil, err
	}
	v.Messages, v.Next = list.Items, r.beside(list.Next)
	if r.by.ReadsAll() && q.Before == "" {
		people, err := s.SearchPeople(r.Context(), v.Filter.Workspace, text, mostPeople)
		if err != nil {
			return "", nil, err
		}
		v.People = people.Items
	}
	return "Search", v, nil
}

// threadRow is a message of the thread, with the messages of the input that show it.
type threadRow struct {
	threads.Message
	Given []operator.InputMessage
	Card  *card.View // nil for none
	Cut   int        // the number of bytes of a text that is not shown as a whole; 0 if each is
}

// cardOf returns the card of a message; nil for none. No image of it is loaded, and no button of it can be pressed.
func cardOf(m *threads.Message) *card.View {
	c := card.Of(m.Metadata)
	if c == nil || m.DeletedAt != nil {
		return nil
	}
	v := card.ViewOf(*c, nil, func(int) string { return "" })
	return &v
}

// author returns the name of who wrote a message, as its platform gave it.
func author(m *threads.Message) string { return operator.Author(m.SenderID, m.Metadata) }

// Author returns the name of who wrote the message.
func (t threadRow) Author() string { return author(&t.Message) }

// Treated returns the decision about a message: run, context or none.
func (t threadRow) Treated() string {
	if t.Trigger == messages.TriggerPassive {
		return "context"
	}
	return string(t.Trigger)
}

// Decision returns the decision about a message in words.
func (t threadRow) Decision() string {
	switch t.Trigger {
	case messages.TriggerRun:
		return "asks the agent"
	case messages.TriggerPassive:
		return "context for a later question"
	}
	return "not for the agent"
}

// cutAt bounds the texts of a list of messages, in bytes, so that a page stays small. A message has a page of its own
// for the rest.
const cutAt = 1200

// threadRows is the number of messages on a page.
const threadRows = 25

// cut returns the beginning of a text, at a whole character, and whether that is all of it.
func cut(text string, most int) (string, bool) {
	if len(text) <= most {
		return text, true
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most], false
}

// shorten cuts the texts of the row. A card keeps the parts that fit as a whole.
func (t *threadRow) shorten() {
	text, all := cut(t.Content, cutAt)
	if !all {
		t.Content, t.Cut = text, len(t.Content)
	}
	if t.Card != nil {
		whole, n := len(t.Card.Plain()), len(t.Card.Parts)
		for ; n > 0 && len(t.Card.Plain()) > cutAt; n-- {
			t.Card.Parts = t.Card.Parts[:n-1]
		}
		if len(t.Card.Plain()) < whole {
			t.Cut = max(t.Cut, whole)
		}
	}
	for i := range t.Given {
		left := cutAt
		pieces := t.Given[i].Pieces
		for j := range pieces {
			pieces[j].Text, all = cut(pieces[j].Text, left)
			if left -= len(pieces[j].Text); !all {
				t.Given[i].Pieces = pieces[:j+1]
				t.Cut = max(t.Cut, len(t.Given[i].Text))
				break
			}
		}
	}
}

// threadView is the data of the page of one thread.
type threadView struct {
	Thread operator.Thread
	Rows   []threadRow
	Hidden bool
	Next   neighbours
	Run    string // whose input is shown; empty for none
	// Kept is that input, if it is as the agent got it. It is shown as a whole, below the messages.
	Kept []operator.InputMessage
}

// thread shows the newest messages of a thread, or those before one.
func thread(s *operator.Service, r request) (string, any, error) {
	page := messages.Page{Limit: threadRows}
	page.Before, _ = strconv.ParseInt(r.query("before"), 10, 64) // a wrong one is the newest page
	one, _ := strconv.ParseInt(r.query("whole"), 10, 64)
	if one > 0 {
		page = messages.Page{Before: one + 1, Limit: 1}
	}
	if page.Before <= 0 {
		page.Before = newest
	}
	got, err := s.Thread(r.Context(), r.by, r.PathValue("id"), page)
	if err != nil {
		return "", nil, err
	}
	v := threadView{Thread: got.Thread, Hidden: got.Hidden}
	if one <= 0 {
		var next *string
		if got.Next != nil {
			next = new(strconv.FormatInt(*got.Next, 10))
		}
		v.Next = r.beside(next)
	}
	for i := range got.Messages {
		v.Rows = append(v.Rows, threadRow{Message: got.Messages[i], Card: cardOf(&got.Messages[i])})
	}
	if err := v.give(s, r); err != nil {
		return "", nil, err
	}
	for i := range v.Rows {
		if one <= 0 {
			v.Rows[i].shorten()
		}
	}
	title := got.Thread.Title
	if title == "" {
		title = "Thread " + string(got.Thread.Key)
	}
	return title, v, nil
}

// give puts each message of the newest run's input beside the message of the thread that it shows. A
// block has the place of the first message of its turn.
func (v *threadView) give(s *operator.Service, r request) error {
	in, err := s.Input(r.Context(), r.by, v.Thread.ID)
	if errors.Is(err, storage.ErrNotFound) || err == nil && in.Hidden {
		return nil
	}
	if err != nil {
		return err
	}
	v.Run = in.Run
	if in.Kept {
		v.Kept = in.Messages
		return nil
	}
	given := map[string][]operator.InputMessage{}
	for _, m := range in.Messages {
		id := strings.TrimPrefix(m.ID, "context-")
		given[id] = append(given[id], m)
	}
	for i := range v.Rows {
		v.Rows[i].Given = given[v.Rows[i].ID]
	}
	return nil
}

// newest is behind the last message of every thread.
const newest = 1 << 62
