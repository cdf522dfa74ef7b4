package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"parley/assembly"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

var inputRoutes = []Route{
	{Pattern: "GET threads/{id}/input", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("run"); err != nil {
			return nil, err
		}
		return s.InputOf(c.Context(), c.By, c.Path("id"), c.Query("run"))
	}},
}

// Input is the input of a run.
type Input struct {
	Run   string `json:"run"`
	Agent string `json:"agent"`
	// Kept tells that the messages are as the agent got them. If not, they are assembled now, and edits
	// since then are in them.
	Kept bool `json:"kept"`
	// Hidden tells that the caller may not read the messages.
	Hidden   bool           `json:"hidden"`
	Messages []InputMessage `json:"messages"`
}

// InputMessage is one message of an agent's input.
type InputMessage struct {
	// ID is the UUID of the thread's message; of a block "context-" and the UUID of its turn's first
	// message; empty for a message of a kept input that would be another now, as after an edit.
	ID   string `json:"id"`
	Role string `json:"role"`
	Text string `json:"text"`
	// Pieces are the text, cut where its author changes; one piece without an ID.
	Pieces []Piece `json:"pieces"`
}

// Piece is a text of one author.
type Piece struct {
	Text string `json:"text"`
	// ByParley tells that Parley wrote it: a header, a line of a block, or an indentation. Other
	// pieces are of people or of the agent.
	ByParley bool `json:"by_parley"`
}

// Input returns the input of the newest run of a thread, by the thread's UUID or key.
func (s *Service) Input(ctx context.Context, by Caller, thread string) (Input, error) {
	return s.InputOf(ctx, by, thread, "")
}

// InputOf returns the input of a run of a thread; an empty run is the newest.
func (s *Service) InputOf(ctx context.Context, by Caller, thread, run string) (Input, error) {
	t, err := s.thread(ctx, thread)
	if err != nil {
		return Input{}, err
	}
	if run, err = s.Journal.Listing.RunID(ctx, run); err != nil {
		return Input{}, err
	}
	given, err := turn.GivenTo(ctx, s.Journal.Runs, s.Journal.Outbox, t.ID, run, s.windowOf, config.Mentions, s.agentIDs()...)
	if errors.Is(err, storage.ErrNotFound) && run != "" {
		given, err = s.keptInput(ctx, t.ID, run)
	}
	if err != nil {
		return Input{}, err
	}
	in := Input{Run: given.Run, Agent: given.Agent, Kept: given.Kept != "", Hidden: !by.Reads(t.Room), Messages: []InputMessage{}}
	if in.Hidden {
		return in, nil
	}
	if in.Kept {
		return in, in.read(given)
	}
	in.Messages = inputOf(given)
	return in, nil
}

// inputOf returns the messages of an input as it would be now.
func inputOf(given turn.Given) []InputMessage {
	list := make([]InputMessage, 0, len(given.Messages))
	for _, m := range given.Messages {
		var said Said
		raw, _ := json.Marshal(m) // text always encodes
		_ = json.Unmarshal(raw, &said)
		text := said.Text()
		list = append(list, InputMessage{ID: m.ID, Role: string(m.Role), Text: text, Pieces: pieces(text, m, given.Typed)})
	}
	return list
}

// keptInput returns the kept input of a run whose messages another run has answered since.
func (s *Service) keptInput(ctx context.Context, thread, run string) (turn.Given, error) {
	found, err := s.Journal.Listing.FindRun(ctx, run)
	if err == nil && found.ThreadID != thread {
		err = storage.ErrNotFound
	}
	if err != nil {
		return turn.Given{}, err
	}
	_, kept, err := s.Journal.Listing.KeptInput(ctx, found.ID)
	return turn.Given{Run: found.ID, Agent: found.Agent, Kept: kept}, err
}

// windowOf returns the window of a run's workspace; the default for one that is not configured any more.
func (s *Service) windowOf(run *runs.Run) assembly.Window {
	if w := s.Config().Workspace(run.Workspace); w != nil {
		return w.Context
	}
	return config.NewWorkspace(run.Workspace, "", "").Context
}

// agentIDs returns the ids of the configured agents.
func (s *Service) agentIDs() (ids []string) {
	for _, a := range s.Config().Agents {
		ids = append(ids, a.ID)
	}
	return ids
}

// read adds the messages of a kept input. Those that would be the same now have the ids and the pieces of that: the
// kept text alone does not tell who wrote which part.
func (in *Input) read(given turn.Given) error {
	var list []Said
	if err := json.Unmarshal([]byte(given.Kept), &list); err != nil {
		return err
	}
	now := inputOf(given)
	for _, said := range list {
		m := InputMessage{Role: said.Role, Text: said.Text(), Pieces: []Piece{{Text: said.Text()}}}
		if i := slices.IndexFunc(now, func(n InputMessage) bool { return n.Role == m.Role && n.Text == m.Text }); i >= 0 {
			m, now = now[i], now[i+1:]
		}
		in.Messages = append(in.Messages, m)
	}
	return nil
}

var (
	// label matches the header of a message.
	label = regexp.MustCompile(`^\[[^\n]*?\]: `)
	// lineLabel matches the beginning of a line of a block. A name in a block has no colon before a space.
	lineLabel = regexp.MustCompile(`^- (?:[^\n]*?: )?`)
)

// leftOut begins the line of a block that counts messages which are not in it.
const leftOut = "- …"

// pieces cuts a message of an input where its author changes. In a message of a person, Parley wrote all text
// that the person has not typed. In a block, Parley wrote the labels and the lines without a label.
func pieces(text string, m assembly.Message, typed map[string]string) []Piece {
	var p split
	own, isTyped := typed[m.ID]
	switch {
	case m.Role == assembly.RoleAssistant:
		return []Piece{{Text: text}}
	case isTyped:
		p.message(text, strings.Split(own, "\n"))
	default:
		p.block(text)
	}
	return p.pieces
}

// split collects pieces. Neighbours of one author are one piece.
type split struct{ pieces []Piece }

func (s *split) add(text string, byParley bool) {
	if text == "" {
		return
	}
	if n := len(s.pieces); n > 0 && s.pieces[n-1].ByParley == byParley {
		s.pieces[n-1].Text += text
		return
	}
	s.pieces = append(s.pieces, Piece{text, byParley})
}

func (s *split) message(text string, typed []string) {
	header := label.FindString(text)
	s.add(header, true)
	for line := range strings.Lines(text[len(header):]) {
		bare := strings.TrimSuffix(line, "\n")
		at := -1
		if len(typed) > 0 {
			at = len(bare) - len(typed[0])
		}
		if at < 0 || bare[at:] != typed[0] || strings.TrimSpace(bare[:at]) != "" {
			s.add(line, true)
			continue
		}
		s.add(line[:at], true)
		s.add(line[at:], false)
		typed = typed[1:]
	}
}

func (s *split) block(text string) {
	for line := range strings.Lines(text) {
		header := lineLabel.FindString(line)
		s.add(header, true)
		s.add(line[len(header):], header == "" || strings.HasPrefix(line, leftOut))
	}
}

// Input returns the input of a run of a thread; an empty run is the newest.
func (c *Client) Input(ctx context.Context, thread, run string) (Input, error) {
	query := url.Values{}
	if run != "" {
		query.Set("run", run)
	}
	return Get[Input](ctx, c, "threads/"+url.PathEscape(thread)+"/input", query)
}
