package operator

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/guard"
	"parley/adapters/replay"
	"parley/adapters/web/exchange"
	"parley/config"
	"parley/ingest"
	"parley/ingest/attach"
	"parley/ingest/event"
	"parley/ingest/journal"
	"parley/ingest/journal/audit"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
)

// Service does the operations of the operator API. Its methods may be called concurrently.
type Service struct {
	Journal *journal.Journal
	// Config returns the configuration that is in use.
	Config func() *config.Config
	Now    func() time.Time
	// Version is that of this program, such as "0.1.0 (abc1234)".
	Version string
	// Node is the name of this process among those that share the store.
	Node string
	// Files is the place of the copies of attachments.
	Files *attach.Store
	// Guard counts refused requests and failures.
	Guard *guard.Guard
	// Play plays a dead letter with this program on a scratch store; it stores and sends nothing.
	Play func(ctx context.Context, letter envelopes.Letter) (*replay.Result, error)
	// Trial plays an invented message on a scratch store. A nil thread is a new one. It stores and sends nothing.
	Trial func(ctx context.Context, t Trial, thread *listing.Thread) (Played, error)
	// Live is the running daemon; nil if the service works on the store alone.
	Live *Live

	hour  kept[Hour]
	needs kept[Needs]
}

// Live has the functions and the parts of the running daemon. They may be used concurrently.
type Live struct {
	Since   time.Time // when the daemon began
	Address string    // of its HTTP server, host:port
	// ConfiguredAt returns when the configuration was last read.
	ConfiguredAt func() time.Time
	// Console returns the address that logs an operator in to the console; nil if there is no console.
	Console func(by Caller) (url string, err error)
	// Chat returns the address of the conversation in a browser; empty if no workspace has one.
	Chat func() string
	// Reload reads the configuration again, and returns after it was applied or refused.
	Reload func(ctx context.Context) (Reloaded, error)
	Log    *Log
	Steps  *Steps
	// Streams has the streams that operators read.
	Streams *exchange.Streams

	Store      Store
	Workspaces Workspaces
	Agents     Agents
	Intake     Intake
	Outbox     Outbox
	Runs       Runs
	Schedules  Schedules
	Pauses     *ingest.Pauses
	Strangers  *ingest.Strangers
}

// Store knows whether the store takes messages.
type Store interface {
	// TakesMessages returns the error for which the store takes no messages; nil if it does.
	TakesMessages(ctx context.Context) error
}

// Workspaces are the configured workspaces of this node.
type Workspaces interface {
	// Status returns the state of a workspace's connections on this node; false before the first report.
	Status(id string) (adapters.Status, bool)
	// Channels returns the channels whose messages reach a workspace, as the platform answers; nil if it
	// has no list.
	Channels(ctx context.Context, id string) ([]string, error)
	// ChannelName returns the name of a channel, as its platform tells it; false if it has none or if it is not known in time.
	ChannelName(ctx context.Context, workspace, channel string) (string, bool)
	// Check asks the platform of a workspace whether the account has the access that it needs.
	Check(ctx context.Context, id string) []Finding
}

// Agents knows how the agents do on this node.
type Agents interface{ Agent(id string) AgentHealth }

// Intake processes dead letters and answers of operators; see ingest.Ingest.
type Intake interface {
	// Resubmit gives a dead letter to intake again.
	Resubmit(ctx context.Context, envelope int64) error
	// AnswerQuestion gives an operator's answer to intake, and returns its envelope.
	AnswerQuestion(ctx context.Context, platform event.Platform, workspace string, a ingest.OperatorAnswer) (envelope int64, err error)
	// Wait waits for the result of an envelope; nil if ctx ends first.
	Wait(ctx context.Context, envelope int64) (*envelopes.Result, error)
}

// Outbox sends posts; see deliver.Outbox.
type Outbox interface {
	// Speak stores a post and sends it.
	Speak(ctx context.Context, s adapters.Speech) (p record.Post, known bool, err error)
	// Link returns the address at which people see a post; empty for none.
	Link(ctx context.Context, workspace string, thread event.ThreadKey, post string) string
	// ResendHeld sends a delivery again.
	ResendHeld(ctx context.Context, delivery int64, force bool) error
}

// Runs changes runs that this node may work on; see turn.Runner.
type Runs interface {
	Retry(ctx context.Context, run string) (runs.Again, error)
	Stop(ctx context.Context, run string, notice outbox.Notice) error
}

// Schedules looks for the ticks of schedules that are due; see schedule.Service.
type Schedules interface{ Look() }

// AgentHealth is how an agent does, as the attempts of its runs show.
type AgentHealth struct {
	Failing   bool      // its last attempt failed for a reason of the agent
	LastError string    // empty if no attempt has failed
	Since     time.Time // of Failing; zero if no attempt has ended
	// FirstToken is how long the last answer's first token took; 0 if there was none.
	FirstToken time.Duration
	Form       []string // of its requests; see turn.Learner
}

// Write names who asks for a change.
type Write struct {
	By string // the operator's id
	// Key is the idempotency key of the request: a repetition gets the first result. It is empty
	// for none.
	Key  string
	Note string
}

// Fail returns a refusal: an HTTP status, a code for programs, words that say what to do, and the
// faulty fields of the request.
func Fail(status int, code, words string, fields ...event.FieldError) error {
	return exchange.Fail(status, code, words, fields...)
}

// maxWords bounds the stored words of an error.
const maxWords = 1000

// audited makes a change for an operator, and stores the operator, the change, its subject, time,
// note and result. If the operator's key was used before, it does nothing and returns the
// first result. A result goes into the audit as JSON, so it has no text of a person.
func audited[T any](ctx context.Context, s *Service, w Write, what, subject string, do func(context.Context) (T, error)) (result T, err error) {
	begun, err := s.Journal.Audit.BeginAction(ctx, audit.Action{Who: w.By, What: what, Subject: subject, Note: w.Note, Key: w.Key})
	switch {
	case errors.Is(err, audit.ErrBusy), errors.Is(err, audit.ErrOtherAction):
		return result, Fail(http.StatusConflict, "idempotency-key", err.Error())
	case err != nil:
		return result, err
	case begun.Result != "":
		return result, json.Unmarshal([]byte(begun.Result), &result)
	}
	result, err = do(ctx)
	ctx = context.WithoutCancel(ctx) // it was done, also for a caller who has gone
	if err != nil {
		words := strings.ToValidUTF8(err.Error()[:min(len(err.Error()), maxWords)], "")
		return result, errors.Join(err, s.Journal.Audit.FailAction(ctx, begun.ID, words))
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return result, err
	}
	return result, s.Journal.Audit.EndAction(ctx, begun.ID, string(raw))
}

// needsLive returns the error of an operation that only a running daemon can do; nil if one runs.
func (s *Service) needsLive(operation string) error {
	if s.Live == nil {
		return Fail(http.StatusConflict, "no-daemon", operation+" needs the running daemon: start it with parley run")
	}
	return nil
}
