package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/adapters"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// Answer is an operator's answer to a question of an agent: an option or other words.
type Answer struct {
	// Option is the id of an option, its label or its number, from 1.
	Option string `json:"option,omitempty"`
	Text   string `json:"text,omitempty"`
	Note   string `json:"note,omitempty"` // for the audit
}

// Answered is the result of an answer.
type Answered struct {
	Run    string `json:"run"`              // that asked
	State  string `json:"state"`            // answered; pending if no node has recorded the answer yet
	Option string `json:"option,omitempty"` // the id of the chosen option
	// Message is the UUID of the answer's message in the thread; empty while it is pending.
	Message string `json:"message,omitempty"`
}

const (
	// maxAnswer bounds the words of an answer, in bytes.
	maxAnswer = 8000
	// answerWait bounds the wait until a node has recorded an answer.
	answerWait = 10 * time.Second
)

// Answer gives an answer to the question of a run to intake, as a message of the operator. It waits until a node has
// recorded that message, which begins the agent's next run as an answer in the chat does.
func (s *Service) Answer(ctx context.Context, w Write, run string, a Answer) (Answered, error) {
	var faults event.FieldErrors
	faults.Check((a.Option == "") != (strings.TrimSpace(a.Text) == ""), "option", "name an option, or give other words as text")
	faults.Check(len(a.Text) <= maxAnswer, "text", "must have at most "+strconv.Itoa(maxAnswer)+" bytes")
	faults.Check(len(w.Note) <= maxNote, "note", "must have at most "+strconv.Itoa(maxNote)+" bytes")
	if len(faults) > 0 {
		return Answered{}, faults
	}
	if err := s.needsLive("an answer to a question"); err != nil {
		return Answered{}, err
	}
	return audited(ctx, s, w, "question.answer", run, func(ctx context.Context) (Answered, error) {
		q, err := s.Journal.Listing.FindQuestion(ctx, run)
		if err != nil {
			return Answered{}, err
		}
		id := uuid.NewString()
		if w.Key != "" {
			id = adapters.Digest([]byte(w.By + " " + w.Key)) // a repetition after a crash is the same message
		}
		return s.give(ctx, id, w.By, &q, a)
	})
}

// give gives an answer with an id to intake.
func (s *Service) give(ctx context.Context, id, by string, q *listing.Question, a Answer) (Answered, error) {
	switch {
	case q.State != "open", !q.UntilAt.After(s.Now()):
		return Answered{}, s.closed(q)
	case !s.mayAnswer(&q.Question, by):
		return Answered{}, Fail(http.StatusForbidden, "approver", fmt.Sprintf("only the approvers of agent %s may answer its approvals: add %s to its approvers", q.Agent, approver(by)))
	}
	option, text := -1, a.Text
	if a.Option != "" {
		option = optionOf(q.Options, a.Option)
	}
	switch {
	case option >= 0:
		text = q.Options[option].Label
	case a.Option != "", q.Approval && len(q.Options) > 0:
		return Answered{}, event.FieldErrors{{Field: "option", Message: "must be one of the question's options: " + namesOf(q.Options)}}
	}
	agent := ""
	if event.IsWorkstream(q.Thread.Key) {
		agent = q.Agent
	}
	envelope, err := s.Live.Intake.AnswerQuestion(ctx, q.Thread.Platform, q.Thread.Workspace, ingest.OperatorAnswer{
		ID: id, By: by, Run: q.Run, Thread: q.Thread.Key, Channel: q.Thread.Channel, Parent: q.Parent, Agent: agent, Option: option, Text: text,
	})
	if err != nil {
		return Answered{}, err
	}
	waits, cancel := context.WithTimeout(ctx, answerWait)
	defer cancel()
	settled, err := s.Live.Intake.Wait(waits, envelope)
	made := Answered{Run: q.Run, State: Pending}
	if option >= 0 {
		made.Option = q.Options[option].ID
	}
	switch {
	case err != nil || settled == nil:
		return made, err
	case settled.Disposition != event.Stored || settled.Message == nil:
		return Answered{}, s.closed(q)
	}
	made.State, made.Message = "answered", settled.Message.UUID
	return made, nil
}

// closed returns the refusal of an answer to a question that takes none.
func (s *Service) closed(q *listing.Question) error {
	words := "it was answered meanwhile, or its agent does not answer there any more"
	switch q.State {
	case "answered", "final":
		words = "it was answered"
	case "expired":
		words = "nobody answered it in time, or its thread has gone on without an answer"
	case "open":
		if !q.UntilAt.After(s.Now()) {
			words = "nobody answered it in time"
		}
	}
	return Fail(http.StatusConflict, "closed", "the question of run "+q.Run+" is closed: "+words)
}

// mayAnswer reports whether an operator may answer a question.
func (s *Service) mayAnswer(q *runs.Question, by string) bool {
	for _, a := range s.Config().Agents {
		if list := a.Config.Bounds().Approvers; a.ID == q.Agent && q.Approval && len(list) > 0 {
			return slices.Contains(list, approver(by))
		}
	}
	return true
}

// approver returns the entry that admits an operator to the approvers of an agent. All users of the socket are one
// operator.
func approver(by string) string {
	id, _, _ := strings.Cut(by, ":")
	return event.OperatorSender(id)
}

// optionOf returns the option with an id, a label or a number; -1 for none.
func optionOf(options []stream.Option, name string) int {
	if i := slices.IndexFunc(options, func(o stream.Option) bool { return o.ID == name }); i >= 0 {
		return i
	}
	if i := slices.IndexFunc(options, func(o stream.Option) bool { return strings.EqualFold(o.Label, name) }); i >= 0 {
		return i
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > len(options) {
		return -1
	}
	return n - 1
}

// namesOf returns the ids and labels of options.
func namesOf(options []stream.Option) string {
	if len(options) == 0 {
		return "it has none; answer in other words"
	}
	words := make([]string, len(options))
	for i, o := range options {
		words[i] = fmt.Sprintf("%s (%s)", o.ID, o.Label)
	}
	return strings.Join(words, ", ")
}

// Answer gives an answer to the question of a run.
func (c *Client) Answer(ctx context.Context, run string, a Answer) (Answered, error) {
	return Post[Answered](ctx, c, "questions/"+url.PathEscape(run)+"/answer", a)
}
