// Package usage sums what agents have done, by day, workspace, channel, agent and person: questions, answers, failures, working time and
// tokens.
//
// The rows of ended runs are the source. Count adds them to sums by day, and the sums stay when the runs are removed. A list adds the runs
// that are not counted yet. A run and its attempts belong to the day of the run's end, in the time zone of the workspace.
package usage

import (
	"context"
	"slices"
	"time"

	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
	"parley/ingest/wake"
)

// Usage has the sums of a journal.
type Usage struct {
	db   *storage.DB
	zone func(workspace string) *time.Location
}

// New returns the sums in a store. zone returns the time zone of a workspace; if it is nil, days are those of UTC.
func New(db *storage.DB, zone func(workspace string) *time.Location) *Usage {
	if zone == nil {
		zone = func(string) *time.Location { return time.UTC }
	}
	return &Usage{db, zone}
}

// Settled is the age at which an ended run is counted by Count: each transaction that has an earlier end is committed by then.
const Settled = 10 * time.Minute

// countPage bounds the runs that one transaction counts, so that an embedded store is locked for some milliseconds.
const countPage = 200

// countPause is the pause between two of these transactions, in which other calls can use the store.
const countPause = 10 * time.Millisecond

// Sums are what runs have used.
type Sums struct {
	Questions, Answers, Failures int64
	WorkMS                       int64 // the time of the attempts, in milliseconds
	Measured                     int64 // attempts whose tokens are known; without one, the sums of tokens mean nothing
	TokensIn, TokensOut          int64
}

func (s *Sums) dest() []any {
	return []any{&s.Questions, &s.Answers, &s.Failures, &s.WorkMS, &s.Measured, &s.TokensIn, &s.TokensOut}
}

func (s *Sums) values() []any {
	return []any{s.Questions, s.Answers, s.Failures, s.WorkMS, s.Measured, s.TokensIn, s.TokensOut}
}

// Add adds other sums.
func (s *Sums) Add(o Sums) {
	s.Questions += o.Questions
	s.Answers += o.Answers
	s.Failures += o.Failures
	s.WorkMS += o.WorkMS
	s.Measured += o.Measured
	s.TokensIn += o.TokensIn
	s.TokensOut += o.TokensOut
}

// By names the kind of the rows of a list.
type By string

// The kinds of rows.
const (
	ByAgent     By = "agent"
	ByPerson    By = "person"
	ByChannel   By = "channel"
	ByDay       By = "day"
	ByWorkspace By = "workspace"
)

// Kinds returns the kinds of rows.
func Kinds() []By { return []By{ByAgent, ByPerson, ByChannel, ByDay, ByWorkspace} }

// Query asks for sums.
type Query struct {
	By        By
	Since     time.Time // the sums begin with the day of this time
	Workspace string    // empty for all
}

// Row is the sum of one agent, person, channel, day or workspace.
type Row struct {
	Key       string // an id, or the date of a day; empty for an unknown person, and for conversations of our API
	Workspace string // of a channel, and of a workspace
	Sums
}

// dayMS is the length of a day that counts days, in milliseconds.
const dayMS = 24 * 60 * 60 * 1000

// day returns the number of the day of a time in a time zone.
func day(at time.Time, zone *time.Location) int64 {
	y, m, d := at.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).UnixMilli() / dayMS
}

// key is the key of the sums.
type key struct {
	workspace              string
	day                    int64
	channel, agent, person string
}

// row returns the row to which the sums of a key belong.
func (k key) row(by By) Row {
	switch by {
	case ByPerson:
		return Row{Key: k.person}
	case ByChannel:
		return Row{Key: k.channel, Workspace: k.workspace}
	case ByDay:
		return Row{Key: time.UnixMilli(k.day * dayMS).UTC().Format(time.DateOnly)}
	case ByWorkspace:
		return Row{Key: k.workspace, Workspace: k.workspace}
	}
	return Row{Key: k.agent}
}

// Of returns the sums, in no order.
func (u *Usage) Of(ctx context.Context, q Query) ([]Row, error) {
	column, known := map[By]string{ByAgent: `agent`, ByPerson: `person`, ByChannel: `channel`, ByDay: `''`, ByWorkspace: `''`}[q.By]
	if !known {
		column = `agent`
	}
	type summed struct {
		key
		word string
		Sums
	}
	return storage.Read(ctx, u.db, func(tx *storage.Txn) []Row {
		list := storage.Rows(tx, func(s *summed) []any { return append([]any{&s.workspace, &s.day, &s.word}, s.dest()...) },
			`SELECT workspace, day, `+column+` AS word, CAST(sum(questions) AS BIGINT), CAST(sum(answers) AS BIGINT), CAST(sum(failures) AS BIGINT), CAST(sum(work_ms) AS BIGINT),
				CAST(sum(measured) AS BIGINT), CAST(sum(tokens_in) AS BIGINT), CAST(sum(tokens_out) AS BIGINT)
			FROM usage_days WHERE day >= $1 AND ($2 = '' OR workspace = $2) GROUP BY workspace, day, word`, storage.Millis(q.Since)/dayMS-1, q.Workspace)
		sums := map[Row]Sums{}
		add := func(k key, s Sums) {
			if k.day < day(q.Since, u.zone(k.workspace)) || q.Workspace != "" && k.workspace != q.Workspace {
				return
			}
			all := sums[k.row(q.By)]
			all.Add(s)
			sums[k.row(q.By)] = all
		}
		for _, s := range list {
			s.channel, s.agent, s.person = s.word, s.word, s.word // row takes the one that is meant
			add(s.key, s.Sums)
		}
		for k, s := range u.ended(tx, max(progress(tx), storage.Millis(q.Since)-2*dayMS), storage.Millis(u.db.Now().Add(Settled))) {
			add(k, s)
		}
		rows := make([]Row, 0, len(sums))
		for r, s := range sums {
			r.Sums = s
			rows = append(rows, r)
		}
		return rows
	})
}

// progress returns the time up to which the runs are in usage_days.
func progress(tx *storage.Txn) (at int64) {
	tx.Row([]any{&at}, `SELECT ended_at FROM usage_progress WHERE id = 1`)
	return at
}

// ended sums the runs that ended after a time and up to another one.
func (u *Usage) ended(tx *storage.Txn, after, upTo int64) map[key]Sums {
	sums := map[key]Sums{}
	for _, e := range runs.EndedBetween(tx, after, upTo) {
		k := key{e.Workspace, day(e.About, u.zone(e.Workspace)), e.Channel, e.Agent, e.Payer}
		all := sums[k]
		all.Add(Sums{e.Questions, e.Answers, e.Failures, e.WorkMS, e.Measured, e.TokensIn, e.TokensOut})
		sums[k] = all
	}
	return sums
}

// Count adds the settled runs to the sums, each once.
func (u *Usage) Count(ctx context.Context) error {
	for {
		due, err := storage.Read(ctx, u.db, func(tx *storage.Txn) bool { return u.nextEnd(tx, progress(tx)) > 0 })
		if err == nil && due {
			err = u.db.Change(ctx, "", u.countPage)
		}
		if err != nil || !due {
			return err
		}
		if !wake.After(ctx, countPause) {
			return context.Cause(ctx)
		}
	}
}

// CorrectProgress lets the runs from now on count, if a clock that led has moved the progress ahead. Runs that ended by that clock count
// a second time when their time comes.
func CorrectProgress(tx *storage.Txn, now, late int64) {
	tx.Do(`UPDATE usage_progress SET ended_at = $1 WHERE ended_at > $2`, now, late)
}

// nextEnd returns the end of the last run of the next page of settled ones after a time; 0 if there is none.
func (u *Usage) nextEnd(tx *storage.Txn, after int64) int64 {
	return runs.EndsAfter(tx, after, storage.Millis(u.db.Now().Add(-Settled)), countPage)
}

// countPage adds the next page of runs to the sums.
func (u *Usage) countPage(tx *storage.Txn) {
	tx.Do(`INSERT INTO usage_progress (id, ended_at) VALUES (1, 0) ON CONFLICT (id) DO NOTHING`)
	var after int64
	tx.Row([]any{&after}, `SELECT ended_at FROM usage_progress WHERE id = 1 FOR UPDATE`)
	upTo := u.nextEnd(tx, after)
	if upTo == 0 { // another node has counted them meanwhile
		return
	}
	for k, s := range u.ended(tx, after, upTo) {
		tx.Do(insert+` VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`+adds, append([]any{k.workspace, k.day, k.channel, k.agent, k.person}, s.values()...)...)
	}
	tx.Do(`UPDATE usage_progress SET ended_at = $1 WHERE id = 1`, upTo)
}

const (
	columns = `questions, answers, failures, work_ms, measured, tokens_in, tokens_out`
	insert  = `INSERT INTO usage_days (workspace, day, channel, agent, person, ` + columns + `)`
	// adds adds sums to those that are there.
	adds = ` ON CONFLICT (workspace, day, channel, agent, person) DO UPDATE SET questions = usage_days.questions + excluded.questions,
		answers = usage_days.answers + excluded.answers, failures = usage_days.failures + excluded.failures, work_ms = usage_days.work_ms + excluded.work_ms,
		measured = usage_days.measured + excluded.measured, tokens_in = usage_days.tokens_in + excluded.tokens_in, tokens_out = usage_days.tokens_out + excluded.tokens_out`
)

// Forget takes a person, by all ids under which the person pays in a workspace, out of the sums and out of the runs that ended since a
// time. The sums stay, as nobody's.
func (u *Usage) Forget(ctx context.Context, workspace string, ids []string, since time.Time) error {
	return u.db.Change(ctx, "", func(tx *storage.Txn) {
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			runs.ForgetPayer(tx, workspace, id, since)
			tx.Do(insert+` SELECT workspace, day, channel, agent, '', `+columns+` FROM usage_days WHERE workspace = $1 AND person = $2`+adds, workspace, id)
			tx.Do(`DELETE FROM usage_days WHERE workspace = $1 AND person = $2`, workspace, id)
		}
	})
}

// Aged returns the step for the sums of days before a bound.
func Aged(before time.Time) storage.Step {
	return storage.ByAge("usage_days", "workspace, day, channel, agent, person", "day", storage.Millis(before)/dayMS)
}

// OfWorkspace returns the step for the sums of a removed workspace.
func OfWorkspace(workspace string) storage.Step { return storage.ByKey(workspace, "usage_days", "day") }
