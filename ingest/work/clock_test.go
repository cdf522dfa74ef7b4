package work_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/ingest/journal"
	"parley/ingest/journal/storage"
)

// The columns whose names are those of due times and that a clock that led leaves as they are, by the reason.
var leftAlone = map[string]string{
	"it says when something happened": `workspaces.removed_at threads.made_at threads.last_at threads.run_begun_at threads.run_edited_at threads.run_event_at
		participants.made_at envelopes.resubmitted_at envelopes.received_at envelopes.accepted_at messages.sent_at messages.created_at messages.edited_at
		messages.deleted_at runs.begun_at runs.answered_at runs.ended_at run_attempts.begun_at run_attempts.answered_at run_attempts.ended_at
		workstreams.ended_at schedules.created_at deliveries.created_at search_people.last_at unfinished_copy.begun_at`,
	"it names a time of the plan, which was asked for": `schedule_ticks.planned_at`,
	"its reader takes a time in the future for none":   `budgets.until_at watermarks.at gaps.from_at gaps.until_at`,
	"a ticket that lives longer lets nobody else in":   `tickets.until_at`,
}

// far are the values of a row in each table with a due time: the column is far in the future, as a clock writes it that leads a
// year. AdjustClock and CorrectPlans correct it.
var far = map[string]string{
	"threads.intake_at": "", "threads.turn_at": "", "threads.run_not_before": "run_id = 'r', turn_at = 1", "threads.lease_until": "owner = 'dead', turn_at = 1",
	"messages.files_until": "run = NULL", "envelopes.not_before": "state = 'pending', thread = 1",
	"questions.asked_at": "state = 'open'", "questions.until_at": "state = 'open', asked_at = until_at",
	"workstreams.launched_at": "due_at = 1", "workstreams.deadline_at": "launched_at = deadline_at, due_at = 1", "workstreams.due_at": "",
	"schedules.next_at": `workspace = 'acme', plan = '{"cron":"* * * * *"}'`, "schedule_ticks.due_at": "state = 'due'",
	"deliveries.due_at": "state = 'pending'", "deliveries.reserved_at": "state = 'pending', due_at = reserved_at", "deliveries.send_by": "state = 'sending', due_at = 1",
	"paces.next_at": "", "paces.blocked_until": "", "paces.left_at": "next_at = left_at",
	"copies_to_check.check_at": "", "copies_to_check.removed_until": "", "exclusive_leases.until": "",
	"strangers.changed_at": "", "strangers.due_at": "changed_at = due_at", "usage_progress.ended_at": "",
}

// everyDueTimeIsCorrected reads the schema: each time that may lie in the future is corrected after a clock that led, or has a
// reason for which it is not.
func everyDueTimeIsCorrected(t *testing.T, s *store, lease time.Duration) {
	now := time.UnixMilli(1_700_000_000_000)
	s.at(now)
	n := newNode(t, s, "after", lease)
	plans := journal.New(s, journal.Options{Now: s.clock})
	alone := map[string]bool{}
	for _, columns := range leftAlone {
		for _, column := range strings.Fields(columns) {
			alone[column] = true
		}
	}
	for table, columns := range s.columns(t) {
		for _, column := range columns {
			name := table + "." + column
			due := strings.HasSuffix(column, "_at") || strings.HasSuffix(column, "until") || column == "send_by" || strings.HasSuffix(column, "not_before")
			also, corrected := far[name]
			switch {
			case !due || alone[name] || table == "schema_migrations":
				continue
			case !corrected:
				t.Errorf("%s is a time: correct it after a clock that led, or say why not", name)
				continue
			case lease == 0 && strings.HasSuffix(name, "s.until") || lease == 0 && column == "lease_until":
				continue // a store for one process has no leases
			}
			n.exec(`DELETE FROM ` + table)
			s.insert(t, table, column, now.AddDate(1, 0, 0).UnixMilli(), also)
			n.check(n.AdjustClock(t.Context()))
			n.check(plans.Schedules.CorrectPlans(t.Context()))
			if at := time.UnixMilli(n.number(`SELECT ` + column + ` FROM ` + table)); at.After(now.Add(10 * time.Minute)) {
				t.Errorf("%s is %v after the correction", name, at)
			}
			n.exec(`DELETE FROM ` + table)
		}
	}
}

// waitsThatWereAskedForStay: a restart shortens no wait that a server has asked for.
func waitsThatWereAskedForStay(t *testing.T, s *store) {
	now := time.UnixMilli(1_700_000_000_000)
	s.at(now)
	n := newNode(t, s, "after", 0)
	asked := now.Add(5 * time.Minute).UnixMilli()
	s.insert(t, "threads", "run_not_before", asked, "run_id = 'r', turn_at = run_not_before")
	n.check(n.AdjustClock(t.Context()))
	if at := n.number(`SELECT run_not_before FROM threads`); at != asked {
		t.Errorf("the next attempt is at %d, want %d", at, asked)
	}
}

// columns returns the columns of each table of the schema.
func (s *store) columns(t *testing.T) map[string][]string {
	t.Helper()
	list := `SELECT m.name, c.name, c.type, c."notnull" FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table'`
	if _, shared := s.Engine.(storage.Clock); shared {
		list = `SELECT table_name, column_name, data_type, CASE WHEN is_nullable = 'NO' AND is_identity = 'NO' THEN 1 ELSE 0 END FROM information_schema.columns WHERE table_schema = current_schema()`
	}
	s.needed = map[string]map[string]string{}
	columns := map[string][]string{}
	if err := s.Engine.ReadOne(t.Context(), func(tx storage.Tx) error {
		return tx.Rows(func(scan func(...any) error) error {
			var table, column, kind string
			var needed int64
			if err := scan(&table, &column, &kind, &needed); err != nil {
				return err
			}
			columns[table] = append(columns[table], column)
			if s.needed[table] == nil {
				s.needed[table] = map[string]string{}
			}
			switch kind = strings.ToLower(kind); {
			case needed == 0:
			case kind == "text":
				s.needed[table][column] = "''"
			case kind == "blob":
				s.needed[table][column] = "x''"
			case kind == "bytea":
				s.needed[table][column] = `'\x'`
			default:
				s.needed[table][column] = "0"
			}
			return nil
		}, list)
	}); err != nil {
		t.Fatal(err)
	}
	return columns
}

// insert makes a row with one value, and with zero values of the columns that must have one. also are assignments that follow.
func (s *store) insert(t *testing.T, table, column string, value int64, also string) {
	t.Helper()
	if s.needed == nil {
		s.columns(t)
	}
	names, values := []string{column}, []string{fmt.Sprint(value)}
	for name, zero := range s.needed[table] {
		if name != column {
			names, values = append(names, name), append(values, zero)
		}
	}
	statements := []string{`INSERT INTO ` + table + ` (` + strings.Join(names, ", ") + `) VALUES (` + strings.Join(values, ", ") + `)`}
	if also != "" {
		statements = append(statements, `UPDATE `+table+` SET `+also)
	}
	if err := s.Engine.Write(t.Context(), storage.WriteOptions{}, func(tx storage.Tx) error {
		for _, statement := range statements {
			if err := tx.Later(nil, nil, statement); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return nil
	}); err != nil {
		t.Fatalf("%s: %v", strings.Join(statements, "; "), err)
	}
}
