package operator_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/cmd/parley/internal/operator"
	"parley/ingest"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/storage"
)

const canary = "canary-4c8e1a7d"

// letter stores a dead letter, whose channel is a room if public is set.
func (s *service) letter(t *testing.T, body string, public bool) int64 {
	t.Helper()
	channel := event.Channel{ID: "D1", Type: event.ChannelDirect}
	if public {
		channel = event.Channel{ID: "C1", Type: event.ChannelRoom}
	}
	stored, err := s.Journal.Envelopes.Accept(t.Context(), envelopes.AcceptRequest{
		Envelope: event.Envelope{Workspace: "acme", Platform: event.Slack, Transport: "http", Body: []byte(body)}, LearnChannel: true,
		Keys: event.Keys{Kind: event.KindMessage, Dedupe: body, Channel: channel, Result: event.Refuse(errors.New("event.text: must be a string"))},
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored.ID
}

// as returns a client with the token of an operator.
func (s *service) as(t *testing.T, token string) *operator.Client {
	t.Helper()
	server := httptest.NewServer(s.Remote(true))
	t.Cleanup(server.Close)
	return operator.DialURL(server.URL, token)
}

// status returns the HTTP status of a refusal; 200 for none.
func status(err error) int {
	if refused, ok := errors.AsType[*operator.Error](err); ok {
		return refused.Status
	}
	return http.StatusOK
}

// TestPayloadsByRole: a viewer reads no payload of a direct message, and only an operator reads tokens.
func TestPayloadsByRole(t *testing.T) {
	t.Parallel()
	s := newService(t)
	const said = `{"token":"` + canary + `","event":{"text":"hello, \"token\":\"mine\"","response_url" : "https://` + canary + `","x":"Bearer ` + canary + `-` + canary + `"}}`
	direct, room := s.letter(t, said, false), s.letter(t, said+" ", true)
	for token, reads := range map[string]map[int64]bool{
		viewerToken: {direct: false, room: true}, readerToken: {direct: true, room: true}, operatorToken: {direct: true, room: true},
	} {
		client := s.as(t, token)
		for id, want := range reads {
			d, err := client.DeadLetter(t.Context(), id, false)
			if err != nil || (d.Payload != nil) != want {
				t.Errorf("%s reads %d: %v %+v", token, id, err, d)
			}
			if d.Payload != nil && (strings.Contains(*d.Payload, canary) || !strings.Contains(*d.Payload, `hello, \"token\":\"mine\"`)) {
				t.Errorf("the payload is %s", *d.Payload)
			}
			_, err = client.DeadLetter(t.Context(), id, true)
			if wanted := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[token == operatorToken]; status(err) != wanted {
				t.Errorf("%s reads %d raw: %v", token, id, err)
			}
		}
		_, err := client.DiscardDead(t.Context(), 12345, "no")
		if wanted := map[bool]int{true: http.StatusNotFound, false: http.StatusForbidden}[token == operatorToken]; status(err) != wanted {
			t.Errorf("%s discards: %v", token, err)
		}
	}
}

// failing is an intake that takes nothing if err is set, and never has a result.
type failing struct{ err error }

func (f *failing) Resubmit(context.Context, int64) error { return f.err }

func (f *failing) AnswerQuestion(context.Context, event.Platform, string, ingest.OperatorAnswer) (int64, error) {
	return 0, f.err
}

func (*failing) Wait(context.Context, int64) (*envelopes.Result, error) { return nil, nil }

// TestRetryOfALetterSaysWhyNot: without a daemon, with a full disk, and for an unknown letter. Each request has its audit row.
func TestRetryOfALetterSaysWhyNot(t *testing.T) {
	t.Parallel()
	s := newService(t)
	id := s.letter(t, "{}", true)
	client := operator.Alone(s.Service, func() error { return nil })
	if _, err := client.RetryDead(t.Context(), id, operator.RetryOptions{}); status(err) != http.StatusConflict || !strings.Contains(err.Error(), "parley run") {
		t.Errorf("without a daemon: %v", err)
	}
	s.running()
	intake := new(failing)
	s.Live.Intake = intake
	for want, err := range map[int]error{
		http.StatusServiceUnavailable: storage.ErrUnavailable, http.StatusNotFound: storage.ErrNotFound, http.StatusConflict: envelopes.ErrRemoved, http.StatusOK: nil,
	} {
		intake.err = err
		got, err := client.RetryDead(t.Context(), id, operator.RetryOptions{})
		if status(err) != want || err == nil && got.Disposition != operator.Pending {
			t.Errorf("%v: %v %+v", intake.err, err, got)
		}
	}
	if _, err := client.RetryDead(t.Context(), id, operator.RetryOptions{Wait: 3600}); status(err) != http.StatusUnprocessableEntity && status(err) != http.StatusBadRequest {
		t.Errorf("an hour: %v", err)
	}
	actions, err := client.Audit(t.Context(), nil)
	if err != nil || len(actions.Items) != 4 || actions.Items[0].What != "dead.retry" {
		t.Errorf("%v %+v", err, actions)
	}
}
