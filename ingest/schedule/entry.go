package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
)

const (
	// maxPrompt bounds the prompt of a schedule, in characters.
	maxPrompt = 32_000
	// leastDistance is the least time between two times of a schedule that an agent or a program makes.
	leastDistance = 15 * time.Minute
	// farthest bounds how far away a single time may be.
	farthest = 5 * 366 * 24 * time.Hour
)

// Entry is a question that an agent wants to be asked later, in a thread.
type Entry struct {
	Workspace string
	Thread    string // the UUID of the thread of its prompt and answer
	Agent     string // that is asked
	Prompt    string
	// At is the only time of the prompt. Cron has five fields, and is read in TimeZone, which is that of the
	// workspace if it is empty. One of At and Cron is set.
	At             time.Time
	Cron, TimeZone string
	// Cause is the sender who asked for the run that makes the entry, and Alone is as in event.Internal.
	Cause string
	Alone bool
	// Key makes the entry the same as an earlier one of the thread with the key; empty for none.
	Key string
}

// Check returns the faults of an entry.
func (e *Entry) Check(now time.Time) (faults event.FieldErrors) {
	faults.Check(e.Prompt != "" && utf8.RuneCountInString(e.Prompt) <= maxPrompt, "prompt", fmt.Sprintf("must have 1 to %d characters", maxPrompt))
	faults.Check(e.At.IsZero() != (e.Cron == ""), "at", "must be given, or cron, and not both")
	faults.Check(e.At.IsZero() || e.At.After(now) && e.At.Sub(now) <= farthest, "at", "must be in the future, within five years; now it is "+now.UTC().Format(time.RFC3339))
	if e.Cron != "" {
		if err := schedules.CheckCron(e.Cron); err != nil {
			faults.Check(false, "cron", err.Error())
		} else {
			faults.Check(schedules.Distance(e.Cron, now) >= leastDistance, "cron", "must leave at least 15 minutes between two times")
		}
	}
	if err := schedules.CheckZone(e.TimeZone); err != nil {
		faults.Check(false, "time_zone", err.Error())
	}
	return faults
}

// Listed is a schedule of a thread as tools show it.
type Listed struct {
	ID       string     `json:"id"`
	At       *time.Time `json:"at,omitempty"`
	Cron     string     `json:"cron,omitempty"`
	TimeZone string     `json:"time_zone,omitempty"`
	Agent    string     `json:"agent"`
	Prompt   string     `json:"prompt"`
	NextAt   *time.Time `json:"next_at"`
}

func listed(s *schedules.Schedule) Listed {
	l := Listed{ID: s.ID, Cron: s.Cron, TimeZone: s.TimeZone, Agent: s.Agent, Prompt: s.Prompt}
	if !s.At.IsZero() {
		l.At = new(s.At.UTC())
	}
	if !s.NextAt.IsZero() {
		l.NextAt = new(s.NextAt.UTC())
	}
	return l
}

// Add stores an entry of a thread. It returns event.FieldErrors, storage.ErrNotFound of an unknown thread or of one of a
// workstream, and schedules.ErrTooMany.
func (s *Service) Add(ctx context.Context, e Entry) (Listed, error) {
	if faults := e.Check(s.Now()); len(faults) > 0 {
		return Listed{}, faults
	}
	thread, known, err := s.thread(ctx, e.Workspace, e.Thread)
	if err != nil {
		return Listed{}, err
	}
	if e.Key == "" {
		e.Key = uuid.NewString()
	}
	sum := sha256.Sum256([]byte(e.Workspace + "\n" + string(known) + "\n" + e.Key))
	n := schedules.Schedule{
		Workspace: e.Workspace, Thread: thread, ID: strings.ToLower(base32.StdEncoding.EncodeToString(sum[:5])),
		Plan: schedules.Plan{Agent: e.Agent, Prompt: e.Prompt, Cause: e.Cause, Alone: e.Alone},
	}
	if e.Cron == "" {
		n.Plan.At = e.At.UTC().Truncate(time.Millisecond)
	} else if n.Cron, n.TimeZone = e.Cron, e.TimeZone; n.TimeZone == "" {
		n.TimeZone = s.Zone(e.Workspace)
	}
	n, err = s.Schedules.AddSchedule(ctx, n)
	return listed(&n), err
}

// List returns the entries of a thread that wait, the next one first. It fails with storage.ErrNotFound of an unknown
// thread.
func (s *Service) List(ctx context.Context, workspace, thread string) ([]Listed, error) {
	key, _, err := s.thread(ctx, workspace, thread)
	if err != nil {
		return nil, err
	}
	waiting, err := s.Schedules.SchedulesOf(ctx, workspace, key)
	list := make([]Listed, len(waiting))
	for i := range waiting {
		list[i] = listed(&waiting[i])
	}
	return list, err
}

// Cancel ends an entry of a thread. It fails with storage.ErrNotFound if there is none that waits.
func (s *Service) Cancel(ctx context.Context, workspace, thread, id string) error {
	key, _, err := s.thread(ctx, workspace, thread)
	if err != nil {
		return err
	}
	return s.Schedules.CancelSchedule(ctx, workspace, key, id)
}

// thread returns the key of the thread in which people read a thread's messages, and the thread's own key, which the agent knows.
func (s *Service) thread(ctx context.Context, workspace, id string) (people, known event.ThreadKey, err error) {
	t, err := s.Threads.Thread(ctx, workspace, id)
	if err == nil && event.IsWorkstream(t.Key) {
		err = storage.ErrNotFound
	}
	if err != nil {
		return "", "", err
	}
	people, err = s.Places.People(ctx, workspace, t)
	return people, t.Key, err
}
