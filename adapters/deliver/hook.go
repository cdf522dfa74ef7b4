package deliver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"parley/adapters"
	"parley/adapters/httpcall"
	"parley/config/secret"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/threads"
	"parley/ingest/trace"
	"parley/ingest/work"
)

// Hook is the address to which a program gets the answers to its messages.
type Hook struct {
	URL    string
	Secret secret.Value
}

// hookTimeout bounds one call of a program, and maxHookAnswer its response, in bytes.
const hookTimeout, maxHookAnswer = 10 * time.Second, 1 << 20

// hookAnswer is the body of the request with an answer.
type hookAnswer struct {
	ID             string          `json:"id"` // of the answer's message; the run's if there is none
	ThreadID       string          `json:"thread_id"`
	RunID          string          `json:"run_id"`
	State          string          `json:"state"`       // of the run: done, failed or cancelled
	Content        string          `json:"content"`     // empty for a run without an answer
	Error          *string         `json:"error"`       // the words for people of a run that failed
	InReplyTo      string          `json:"in_reply_to"` // the id of the program's message
	DispatchType   json.RawMessage `json:"dispatch_type"`
	DispatchConfig json.RawMessage `json:"dispatch_config"`
}

// Copies implements turn.Copier: each message of a run that a program with a Hook has sent gets a copy of the answer, or
// the failed or quiet end of a run. A run that a person stops has none. A program's copies are a queue of their own, so that
// neither a chat nor another program waits for it.
func (o *Outbox) Copies(ctx context.Context, run *runs.Run) (list []runs.Copy, err error) {
	for i := range run.Messages {
		m := &run.Messages[i]
		metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one has nothing to give back
		by, ok := o.programOf(run, m, metadata)
		if _, hooked := o.hook(by); !ok || !hooked {
			continue
		}
		workspace, _, _ := strings.Cut(by, "/")
		queue := threads.Thread{Workspace: workspace, Key: event.CopiesTo(by)}
		if queue.ID, err = o.Threads.ThreadID(ctx, queue.Key); err != nil {
			return nil, err
		}
		answer := hookAnswer{ThreadID: run.ThreadID, RunID: run.AgentID(), InReplyTo: m.UUID, DispatchType: null, DispatchConfig: null}
		for _, extra := range metadata.Extra {
			switch extra.Key {
			case event.DispatchType:
				answer.DispatchType = extra.Value
			case event.DispatchConfig:
				answer.DispatchConfig = extra.Value
			}
		}
		list = append(list, runs.Copy{Queue: queue, To: by, Of: m.UUID, Text: func(state runs.State, reply *messages.Message, failure string) string {
			answer.ID, answer.State = answer.RunID, messages.StateOf(string(state))
			if reply != nil {
				answer.ID, answer.Content = reply.UUID, reply.Content
			}
			if failure != "" {
				answer.Error = &failure
			}
			raw, _ := json.Marshal(answer) // texts and JSON always encode
			return string(raw)
		}})
	}
	return list, nil
}

// programOf returns the program that has injected a message, or has sent it to its own workspace.
func (o *Outbox) programOf(run *runs.Run, m *messages.Message, metadata event.Metadata) (by string, ok bool) {
	if by, ok = event.InjectedBy(m.ExternalID); ok || run.Platform != event.Web || o.Caller == nil {
		return by, ok
	}
	for _, extra := range metadata.Extra {
		if extra.Key == event.KeySentBy {
			id, err := event.Unquote(extra.Value)
			return run.Workspace + "/" + id, err == nil
		}
	}
	return o.Caller(run.Workspace, m.SenderID)
}

var null = json.RawMessage("null")

// hook returns the address of a program.
func (o *Outbox) hook(by string) (Hook, bool) {
	if o.Hook == nil {
		return Hook{}, false
	}
	return o.Hook(by)
}

// Copied implements turn.Copier.
func (o *Outbox) Copied(queues []int64) {
	for _, queue := range queues {
		o.Work.Wake(work.Deliveries, "", queue)
	}
}

// platformOf returns the platform to which a delivery goes.
func (o *Outbox) platformOf(d *outbox.Delivery) Platform {
	if d.Kind == outbox.KindCopy {
		return Platform{Sender: hookSender{o}, Limits: adapters.Limits{Timeout: hookTimeout}}
	}
	platform, _ := o.Platform(d.Workspace)
	return platform
}

// hookSender posts copies of answers to programs. A repeated copy has the same id, so that each call may be repeated.
type hookSender struct{ outbox *Outbox }

// Format implements adapters.Sender. No text is formatted for a program.
func (hookSender) Format(text string, _ []string) []string { return []string{text} }

// Address implements adapters.Sender. The address of a copy is its program.
func (hookSender) Address(event.ThreadKey, string) (adapters.Address, error) {
	return adapters.Address{}, errNotHere
}

// Send implements adapters.Sender.
func (s hookSender) Send(ctx context.Context, post adapters.Post) (string, error) {
	hook, ok := s.outbox.hook(post.To.Channel)
	if !ok {
		return "", adapters.Permanently("the token has no deliver any more")
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL, strings.NewReader(post.Text))
	if err == nil {
		request.Header.Set("Content-Type", "application/json")
		err = httpcall.SetSignature(request, hook.Secret.Reveal(), s.outbox.Now())
	}
	if err != nil {
		return "", adapters.Permanently("the address of deliver is not usable")
	}
	trace.SetHeader(ctx, request.Header)
	response, _, err := httpcall.Do(s.outbox.programs, request, maxHookAnswer)
	if err == nil {
		err = httpcall.RefusalOf(response)
	}
	return "", adapters.WithoutEffect(err)
}
