package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/adapters/replay"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/storage"
)

var deadRoutes = []Route{
	{Pattern: "GET dead", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("before", "limit"); err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.Dead(c.Context(), page)
	}},
	{Pattern: "GET dead/{id}", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		id, err := c.ID("id")
		if err != nil {
			return nil, err
		}
		return s.DeadLetter(c.Context(), c.By, id, c.Query("raw") == "true")
	}},
	{Pattern: "POST dead/{id}/retry", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var how RetryOptions
		id, err := c.IDAnd("id", &how)
		if err != nil {
			return nil, err
		}
		if how.DryRun {
			return s.TryDead(c.Context(), id)
		}
		return s.RetryDead(c.Context(), c.Write(""), id, how)
	}},
	{Pattern: "POST dead/{id}/discard", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var note struct {
			Note string `json:"note"`
		}
		id, err := c.IDAnd("id", &note)
		if err != nil {
			return nil, err
		}
		return s.DiscardDead(c.Context(), c.Write(note.Note), id)
	}},
}

// DeadLetter is a payload that could not be recorded, or was resubmitted since.
type DeadLetter struct {
	ID        int64  `json:"id"`
	Workspace string `json:"workspace"`
	Platform  string `json:"platform"`
	Transport string `json:"transport"`
	Thread    string `json:"thread"`  // key of its thread; empty if that could not be read
	Message   string `json:"message"` // the platform's id of the message that it is about; empty if that could not be read
	Key       string `json:"key"`     // by which a repetition of the payload is known
	Kind      string `json:"kind"`
	// ReceivedAt is nil if the arrival is unknown; RetriedAt is nil if nobody resubmitted it.
	ReceivedAt  *time.Time          `json:"received_at"`
	RetriedAt   *time.Time          `json:"retried_at"`
	State       listing.LetterState `json:"state"`
	Disposition string              `json:"disposition"` // empty while it has no result
	Reason      string              `json:"reason"`
	Error       string              `json:"error"`
	// Payload is a text with the platform's bytes; nil if it was removed or may not be shown, and in lists.
	Payload *string `json:"payload,omitempty"`
}

// RetryOptions are the body of a request to resubmit a dead letter.
type RetryOptions struct {
	DryRun bool `json:"dry_run"` // show the result, and change nothing
	// Wait bounds the wait for the result, in seconds; 0 for none.
	Wait int `json:"wait"`
}

// maxWait bounds RetryOptions.Wait.
const maxWait = 20

// Retried is the result of a resubmitted dead letter.
type Retried struct {
	ID          int64  `json:"id"`
	Disposition string `json:"disposition"` // that of replay, or pending if there is no result yet
	Trigger     string `json:"trigger"`
	Reason      string `json:"reason"`
	Error       string `json:"error"`
	// Assembled and Replies are the agent's input and its posts, as in replay; only of a dry run.
	Assembled []Said         `json:"assembled,omitempty"`
	Replies   []replay.Reply `json:"replies,omitempty"`
}

// Said is a message of an agent's input.
type Said struct {
	Role string `json:"role"`
	// Content is a text, or a list of {"type":"text","text"} and {"type":"binary","mimeType","filename"}.
	Content json.RawMessage `json:"content"`
}

// Text returns the texts of the message, and the names of its files.
func (m Said) Text() string {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return text
	}
	var parts []struct{ Text, Filename string }
	_ = json.Unmarshal(m.Content, &parts) // an unknown form has no text to show
	lines := make([]string, len(parts))
	for i, p := range parts {
		lines[i] = cmp.Or(p.Text, p.Filename)
	}
	return strings.Join(lines, "\n")
}

// Pending is the disposition of a resubmitted letter without a result yet.
const Pending = "pending"

// Dead returns a page of the dead letters, the newest first.
func (s *Service) Dead(ctx context.Context, page Page) (List[DeadLetter], error) {
	before, err := page.Row()
	if err != nil {
		return List[DeadLetter]{}, err
	}
	rows, err := s.Journal.Listing.DeadLetters(ctx, before, page.Limit)
	if err != nil {
		return List[DeadLetter]{}, err
	}
	items := make([]DeadLetter, len(rows))
	for i, r := range rows {
		items[i] = letterOf(r)
	}
	return listOf(items, len(rows) == page.Limit, func(d DeadLetter) string { return strconv.FormatInt(d.ID, 10) }), nil
}

func letterOf(d listing.DeadLetter) DeadLetter {
	return DeadLetter{
		ID: d.ID, Workspace: d.Workspace, Platform: string(d.Platform), Transport: d.Transport, Thread: string(d.Thread), Message: d.MessageID, Key: d.Key,
		Kind: string(d.Kind), ReceivedAt: timeOrNil(d.ReceivedAt), RetriedAt: timeOrNil(d.ResubmittedAt), State: d.State,
		Disposition: string(d.Disposition), Reason: d.Reason, Error: d.Error,
	}
}

// timeOrNil returns a time that may be zero for JSON.
func timeOrNil(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// DeadLetter returns an envelope that is, or was, a dead letter. While it is one, a caller who may read it gets its
// payload, in which tokens are masked unless raw is set.
func (s *Service) DeadLetter(ctx context.Context, by Caller, id int64, raw bool) (DeadLetter, error) {
	row, err := s.Journal.Listing.DeadLetter(ctx, id)
	if err != nil {
		return DeadLetter{}, err
	}
	shown := letterOf(row)
	if raw && !by.Role.Has(config.RoleOperator) {
		return DeadLetter{}, Fail(http.StatusForbidden, "role", "the raw payload, which may have tokens, needs the role operator")
	}
	if row.State != listing.LetterDead || !by.Reads(!row.Private) {
		return shown, nil
	}
	letter, err := s.Journal.Envelopes.Letter(ctx, id)
	switch {
	case errors.Is(err, envelopes.ErrSettled), err == nil && len(letter.Envelope.Body) == 0:
		return shown, nil
	case err != nil:
		return DeadLetter{}, err
	}
	payload := string(letter.Envelope.Body)
	if !raw {
		payload = mask(payload)
	}
	shown.Payload = &payload
	return shown, nil
}

// RetryDead resubmits a dead letter and waits for its result. If it was resubmitted before, RetryDead returns
// the result of that.
func (s *Service) RetryDead(ctx context.Context, w Write, id int64, how RetryOptions) (Retried, error) {
	if how.Wait < 0 || how.Wait > maxWait {
		return Retried{}, event.FieldErrors{{Field: "wait", Message: "must be 0 to " + strconv.Itoa(maxWait) + " seconds"}}
	}
	if err := s.needsLive("the retry of a dead letter"); err != nil {
		return Retried{}, err
	}
	return audited(ctx, s, w, "dead.retry", strconv.FormatInt(id, 10), func(ctx context.Context) (Retried, error) {
		err := s.Live.Intake.Resubmit(ctx, id)
		if errors.Is(err, envelopes.ErrSettled) {
			_, err = s.Journal.Listing.DeadLetter(ctx, id) // an envelope that never was one is unknown here
		}
		if err != nil {
			return Retried{}, refusal(err)
		}
		ctx, cancel := context.WithTimeout(ctx, max(time.Duration(how.Wait)*time.Second, time.Millisecond))
		defer cancel()
		settled, err := s.Live.Intake.Wait(ctx, id)
		return retriedOf(id, settled), err
	})
}

// refusal returns the error of a change that the state of its subject does not allow.
func refusal(err error) error {
	if errors.Is(err, storage.ErrNotFound) || storage.Unavailable(err) {
		return err
	}
	return Fail(http.StatusConflict, "state", err.Error())
}

// retriedOf returns the result of an envelope; nil means that there is none yet.
func retriedOf(id int64, r *envelopes.Result) Retried {
	if r == nil {
		return Retried{ID: id, Disposition: Pending, Trigger: "none"}
	}
	made := Retried{ID: id, Disposition: string(r.Disposition), Trigger: "none", Reason: r.Reason, Error: r.Error}
	if r.Message != nil && r.Disposition == event.Stored {
		made.Trigger = string(r.Message.Trigger)
	}
	return made
}

// TryDead plays a dead letter with this program on a scratch store. It stores and sends nothing; it does ask the agent.
func (s *Service) TryDead(ctx context.Context, id int64) (Retried, error) {
	letter, err := s.Journal.Envelopes.Letter(ctx, id)
	switch {
	case err != nil:
		return Retried{}, refusal(err)
	case len(letter.Envelope.Body) == 0:
		return Retried{}, refusal(envelopes.ErrRemoved)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, playTime, errPlayTime)
	defer cancel()
	result, err := s.Play(ctx, letter)
	switch {
	case context.Cause(ctx) == errPlayTime:
		return Retried{}, Fail(http.StatusGatewayTimeout, "agent", errPlayTime.Error())
	case err != nil:
		return Retried{}, err
	}
	made := Retried{
		ID: id, Disposition: string(result.Disposition), Trigger: string(result.Trigger), Reason: result.Reason, Error: result.Error, Replies: result.Replies,
	}
	for _, m := range result.Assembled {
		raw, err := m.MarshalJSON()
		if err != nil {
			return Retried{}, err
		}
		var said Said
		if err := json.Unmarshal(raw, &said); err != nil {
			return Retried{}, err
		}
		made.Assembled = append(made.Assembled, said)
	}
	return made, nil
}

// playTime bounds a dry run, so that its answer fits into the time of a request.
const playTime = 25 * time.Second

var errPlayTime = errors.New("the agent did not answer within 25 seconds; export the letter and use parley replay")

// Discarded is the result of a dead letter that was given up.
type Discarded struct {
	ID    int64               `json:"id"`
	State listing.LetterState `json:"state"`
}

// DiscardDead gives up a dead letter. The note says why.
func (s *Service) DiscardDead(ctx context.Context, w Write, id int64) (Discarded, error) {
	if w.Note == "" || len(w.Note) > maxNote {
		return Discarded{}, event.FieldErrors{{Field: "note", Message: "must say why, in at most " + strconv.Itoa(maxNote) + " bytes"}}
	}
	return audited(ctx, s, w, "dead.discard", strconv.FormatInt(id, 10), func(ctx context.Context) (Discarded, error) {
		err := s.Journal.Envelopes.Discard(ctx, id)
		if errors.Is(err, envelopes.ErrSettled) {
			if _, shown := s.Journal.Listing.DeadLetter(ctx, id); shown != nil {
				return Discarded{}, shown
			}
		}
		if err != nil {
			return Discarded{}, refusal(err)
		}
		return Discarded{id, listing.LetterDiscarded}, nil
	})
}

// Dead returns a page of the dead letters, the newest first.
func (c *Client) Dead(ctx context.Context, query url.Values) (List[DeadLetter], error) {
	return Get[List[DeadLetter]](ctx, c, "dead", query)
}

// DeadLetter returns an envelope that is, or was, a dead letter, with its payload.
func (c *Client) DeadLetter(ctx context.Context, id int64, raw bool) (DeadLetter, error) {
	return Get[DeadLetter](ctx, c, "dead/"+strconv.FormatInt(id, 10), url.Values{"raw": {strconv.FormatBool(raw)}})
}

// RetryDead resubmits a dead letter, or shows its result without a change.
func (c *Client) RetryDead(ctx context.Context, id int64, how RetryOptions) (Retried, error) {
	return Post[Retried](ctx, c, "dead/"+strconv.FormatInt(id, 10)+"/retry", how)
}

// DiscardDead gives up a dead letter. The note says why.
func (c *Client) DiscardDead(ctx context.Context, id int64, note string) (Discarded, error) {
	return Post[Discarded](ctx, c, "dead/"+strconv.FormatInt(id, 10)+"/discard", map[string]string{"note": note})
}
