package listing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/workstreams"
)

// Run is a run of a thread's agent.
type Run struct {
	ID        string          `json:"id"`
	Thread    event.ThreadKey `json:"thread"`
	ThreadID  string          `json:"thread_id"` // the thread's UUID
	Workspace string          `json:"workspace"`
	Channel   string          `json:"channel"`
	// ChannelType is room, direct or group; empty if it is not known.
	ChannelType event.ChannelType `json:"channel_type"`
	Room        bool              `json:"-"` // the thread is in a room, as in Thread
	Agent       string            `json:"agent"`
	State       string            `json:"state"` // running, done, quiet (the agent chose to say nothing), failed, cancelled
	BegunAt     time.Time         `json:"begun_at"`
	// FirstAt is the time of the answer's first part; zero for none. EndedAt is zero for an unfinished run.
	FirstAt  time.Time `json:"first_byte_at,omitzero"`
	EndedAt  time.Time `json:"ended_at,omitzero"`
	Error    string    `json:"error"`    // empty for none
	Attempts []Attempt `json:"attempts"` // those that have ended or are lost
	// Workstreams are those that the run has launched, the first launched one first. A list of runs has none.
	Workstreams []Workstream `json:"workstreams,omitempty"`
}

// Workstream is a child of a run, without the words that its parent and it have for each other.
type Workstream struct {
	ID         string    `json:"launch_id"`
	ThreadID   string    `json:"thread_id"` // the UUID of its own thread; empty until its task is recorded
	Agent      string    `json:"agent"`
	State      string    `json:"state"`
	Phase      string    `json:"phase"`
	Tool       string    `json:"tool"` // of executing_tool
	Iteration  int64     `json:"iteration"`
	LaunchedAt time.Time `json:"launched_at"`
	DeadlineAt time.Time `json:"deadline_at"`
	EndedAt    time.Time `json:"ended_at,omitzero"`
	Error      string    `json:"error"` // empty for none
}

// String returns the workstream in one line.
func (w Workstream) String() string {
	words := fmt.Sprintf("%s of agent %s: %s", w.ID, w.Agent, w.State)
	if w.EndedAt.IsZero() {
		words += ", " + workstreams.Progress{Phase: workstreams.Phase(w.Phase), Tool: w.Tool}.String()
	}
	if w.Error != "" {
		words += ": " + w.Error
	}
	return words
}

// Attempt is one request of a run to its agent that has ended, or whose process has. Of such a lost one, only the
// number and the error are known; it is listed from the run's next attempt on.
type Attempt struct {
	N           int64     `json:"n"` // 1, 2, 3 … of the run
	Node        string    `json:"node"`
	BegunAt     time.Time `json:"begun_at,omitzero"`
	FirstAt     time.Time `json:"first_byte_at,omitzero"`
	EndedAt     time.Time `json:"ended_at,omitzero"`
	Error       string    `json:"error"`        // empty for none
	InputSHA256 string    `json:"input_sha256"` // empty if the agent got no input
	TokensIn    int64     `json:"tokens_in"`    // 0 if the server sent no count
	TokensOut   int64     `json:"tokens_out"`
	Finish      string    `json:"finish_reason"` // the model's own word; empty for none
}

// Lost reports whether the attempt ended with its process.
func (a Attempt) Lost() bool { return a.EndedAt.IsZero() }

// RunFilter chooses runs. An empty field chooses all.
type RunFilter struct {
	State        string // running, done, quiet, failed or cancelled
	Workspace    string
	Thread       string // a key or a UUID
	Channel      string // of the thread, or the parent of that
	Agent        string
	Text         string    // that the error has, in any case
	Since, Until time.Time // of the end, or of the begin of an unfinished one
	After        string    // the next of the page before; empty for the first page
	Limit        int
}

// RunStates returns the states of runs.
func RunStates() []string { return []string{"running", "done", Quiet, "failed", "cancelled"} }

const (
	channelType = `coalesce((SELECT c.type FROM channels c WHERE c.workspace = t.workspace AND c.id = t.channel), '')`
	ofRoom      = `EXISTS (SELECT 1 FROM channels c WHERE c.workspace = t.workspace AND c.id IN (t.channel, t.parent) AND c.type = 'room')`
	endedRun    = `SELECT r.id, t.key, t.uuid, t.workspace, t.channel, ` + channelType + `, ` + ofRoom + `, r.agent, r.state, r.begun_at, r.answered_at, r.ended_at, r.error
		FROM runs r JOIN threads t ON t.id = r.thread WHERE `
	openRun = `SELECT t.run_id, t.key, t.uuid, t.workspace, t.channel, ` + channelType + `, ` + ofRoom + `, t.agent, 'running', t.run_begun_at, 0, 0, '' FROM threads t WHERE t.run_id IS NOT NULL AND `
	// runMatches is the condition of a RunFilter about the thread of a run: workspace, thread and channel.
	runMatches = `($1 = '' OR t.workspace = $1) AND ($2 = '' OR $2 IN (t.key, t.uuid)) AND ($3 = '' OR $3 IN (t.channel, t.parent))`
)

// chooses reports whether the filter leaves out runs of the page, apart from failed ones, which have an index.
func (f *RunFilter) chooses() bool {
	return f.State != "" && f.State != "failed" || f.Workspace != "" || f.Thread != "" || f.Channel != "" || f.Agent != "" || f.Text != ""
}

func (r *Run) dest() []any {
	return []any{&r.ID, (*string)(&r.Thread), &r.ThreadID, &r.Workspace, &r.Channel, (*string)(&r.ChannelType), &r.Room, &r.Agent, &r.State, &r.BegunAt, &r.FirstAt, &r.EndedAt, &r.Error}
}

// endedStates are the stored states of the runs that have ended, by the name of RunStates.
var endedStates = map[string]string{"done": ",done,", Quiet: ",quiet,", "failed": ",failed,", "cancelled": ",canceled,dropped,interrupted,"}

// ListRuns returns a page of the runs: the unfinished ones, and then those that have ended, the last one first. next
// is the position of the page after it; empty if there is none. With a filter, a page looks at the next CountLimit ended runs, so it may
// have fewer than Limit runs, or none, before the last one.
func (l *Listing) ListRuns(ctx context.Context, f RunFilter) (list []Run, next string, err error) {
	open, at, id, err := readRunCursor(f.After)
	if err != nil {
		return nil, "", err
	}
	since, end := storage.Millis(f.Since), int64(math.MaxInt64)
	if !f.Until.IsZero() {
		end = storage.Millis(f.Until) + 1
	}
	list, err = storage.Read(ctx, l.db, func(tx *storage.Txn) (list []Run) {
		next = ""
		if open && (f.State == "" || f.State == "running") && f.Text == "" {
			list = storage.Rows(tx, (*Run).dest, openRun+runMatches+` AND ($4 = '' OR t.agent = $4) AND t.run_id < $5 AND t.run_begun_at >= $6 AND t.run_begun_at < $7
				ORDER BY t.run_id DESC LIMIT CAST($8 AS BIGINT)`, f.Workspace, f.Thread, f.Channel, f.Agent, id, since, end, int64(f.Limit))
		}
		from := position{at, id}
		if open {
			from = position{math.MaxInt64, ""}
		}
		switch {
		case len(list) == f.Limit:
			next = list[len(list)-1].cursor()
		case f.State != "running":
			from.at = min(from.at, end)
			list, next = endedRuns(tx, list, f, from, since)
		}
		complete(tx, list)
		return list
	})
	return list, next, err
}

// position is one in the order of ended runs.
type position struct {
	at int64
	id string
}

// endedRuns adds the ended runs before a position to a page, and returns it with the position of the next page.
func endedRuns(tx *storage.Txn, list []Run, f RunFilter, from position, since int64) (page []Run, next string) {
	failed := ``
	if f.State == "failed" {
		failed = ` AND r.state = 'failed'` // in the words of an index
	}
	var floor position // of the first run that is not looked at
	if f.chooses() {
		tx.Row([]any{&floor.at, &floor.id}, `SELECT r.ended_at, r.id FROM runs r WHERE (r.ended_at, r.id) < ($1, $2) AND r.ended_at >= $3`+failed+`
			ORDER BY r.ended_at DESC, r.id DESC LIMIT 1 OFFSET `+mostCounted, from.at, from.id, since)
	}
	like := ""
	if f.Text != "" {
		like = "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(strings.ToLower(f.Text)) + "%"
	}
	page = append(list, storage.Rows(tx, (*Run).dest, endedRun+runMatches+` AND (r.ended_at, r.id) < ($4, $5) AND r.ended_at >= $6`+failed+` AND (r.ended_at, r.id) > ($7, $8)
		AND ($9 = '' OR r.agent = $9) AND ($10 = '' OR $10 LIKE '%,' || r.state || ',%') AND ($11 = '' OR lower(r.error) LIKE $11 ESCAPE '\')
		ORDER BY r.ended_at DESC, r.id DESC LIMIT CAST($12 AS BIGINT)`,
		f.Workspace, f.Thread, f.Channel, from.at, from.id, since, floor.at, floor.id, f.Agent, endedStates[f.State], like, int64(f.Limit-len(list)))...)
	switch {
	case len(page) == f.Limit:
		next = page[len(page)-1].cursor()
	case floor.id != "":
		next = fmt.Sprintf("%d:%s~", floor.at, floor.id) // after this id, and before the next one
	}
	return page, next
}

// RunID returns the id of the run that an id of any kind leads to: its own, the one by which its agent knows it, the one that its
// client chose, or that of a message of its turn. An unknown id is returned as it is.
func (l *Listing) RunID(ctx context.Context, id string) (string, error) {
	if id == "" {
		return "", nil
	}
	return storage.Read(ctx, l.db, func(tx *storage.Txn) string { return runID(tx, id) })
}

// runID is RunID inside a transaction. Clients of several threads may have chosen the same id: it leads to the newest run of them.
func runID(tx *storage.Txn, id string) string {
	tx.Row([]any{&id}, `SELECT run FROM (SELECT 1 AS kind, run_id AS run, 0 AS n FROM threads WHERE run_id = $1
		UNION ALL SELECT 1, id, 0 FROM runs WHERE id = $1
		UNION ALL SELECT 2, run, row FROM messages WHERE id = $1 AND run IS NOT NULL
		UNION ALL SELECT 3, run, row FROM messages WHERE client_run_id = $1 AND run IS NOT NULL) AS known ORDER BY kind, n DESC LIMIT 1`, id)
	return id
}

// FindRun returns a run by an id of any kind; see RunID. It fails with ErrNotFound if there is none.
func (l *Listing) FindRun(ctx context.Context, id string) (Run, error) {
	return storage.Read(ctx, l.db, func(tx *storage.Txn) Run {
		run := findRun(tx, runID(tx, id))
		if run == nil {
			tx.Fail(storage.ErrNotFound)
			return Run{}
		}
		return *run
	})
}

// findRun returns a run; nil if no run has the id.
func findRun(tx *storage.Txn, id string) *Run {
	list := storage.Rows(tx, (*Run).dest, openRun+`t.run_id = $1`, id)
	if len(list) == 0 {
		list = storage.Rows(tx, (*Run).dest, endedRun+`r.id = $1`, id)
	}
	if len(list) == 0 {
		return nil
	}
	complete(tx, list)
	list[0].Workstreams = storage.Rows(tx, func(w *Workstream) []any {
		return []any{&w.ID, &w.ThreadID, &w.Agent, &w.State, &w.Phase, &w.Tool, &w.Iteration, &w.LaunchedAt, &w.DeadlineAt, &w.EndedAt, &w.Error}
	}, `SELECT w.id, coalesce(t.uuid, ''), w.agent, w.state, w.phase, w.tool, w.iteration, w.launched_at, w.deadline_at,
			CASE WHEN w.state IN ('running', 'canceling') THEN 0 ELSE coalesce(w.ended_at, 0) END, w.error
		FROM workstreams w LEFT JOIN threads t ON t.key = w.thread WHERE w.run = $1 ORDER BY w.launched_at, w.id`, id)
	return &list[0]
}

// KeptInput returns the messages that an agent got in the last attempt of a run, as JSON, with the number of the attempt.
// It fails with ErrNotFound if they were not kept.
func (l *Listing) KeptInput(ctx context.Context, run string) (attempt int64, input string, err error) {
	err = l.db.One(ctx, []any{&attempt, &input}, `SELECT n, input FROM run_inputs WHERE run = $1 AND n > 0 ORDER BY n DESC LIMIT 1`, run)
	return attempt, input, err
}

// Quiet is the state of a run whose agent chose to say nothing. In the API it is done.
const Quiet = "quiet"

// complete gives the runs their attempts, and their states the external names.
func complete(tx *storage.Txn, list []Run) {
	for i := range list {
		r := &list[i]
		if r.State != Quiet {
			r.State = cmp.Or(messages.StateOf(r.State), r.State)
		}
		r.Attempts = attempts(tx, r.ID)
	}
}

func attempts(tx *storage.Txn, run string) []Attempt {
	list := storage.Rows(tx, func(a *Attempt) []any {
		return []any{&a.N, &a.Node, &a.BegunAt, &a.FirstAt, &a.EndedAt, &a.Error, &a.Finish, &a.TokensIn, &a.TokensOut, &a.InputSHA256}
	}, `SELECT n, node, begun_at, answered_at, ended_at, error, finish, tokens_in, tokens_out, input_sha256 FROM run_attempts WHERE run = $1 ORDER BY n`, run)
	return append([]Attempt{}, list...)
}

// cursor is the run's position in the order of ListRuns.
func (r *Run) cursor() string {
	if r.EndedAt.IsZero() {
		return "open:" + r.ID
	}
	return fmt.Sprintf("%d:%s", storage.Millis(r.EndedAt), r.ID)
}

// ErrPosition is the error of a position that no page has named.
var ErrPosition = errors.New("no page ends at this position")

// readRunCursor reads a position. open means that it is before an unfinished run.
func readRunCursor(cursor string) (open bool, at int64, id string, err error) {
	if cursor == "" {
		return true, 0, "z", nil // after every UUID, in each order of texts
	}
	first, id, ok := strings.Cut(cursor, ":")
	if first == "open" && ok {
		return true, 0, id, nil
	}
	at, err = strconv.ParseInt(first, 10, 64)
	if err != nil || !ok {
		return false, 0, "", ErrPosition
	}
	return false, at, id, nil
}
