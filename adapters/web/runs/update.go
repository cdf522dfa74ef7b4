package runs

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
	"parley/ingest/work"
)

const (
	// maxUpdates bounds the messages of one POST, and maxAdded those of agents' tokens in a run.
	maxUpdates, maxAdded = 100, 200
	// chunkChars bounds the characters of a chunk.
	chunkChars = 200
)

// forTokens are the types of the messages that every agent's token may add to a run. The others come from
// the run's own agent alone, because they take effect.
var forTokens = []stream.Type{stream.Thought, stream.Plan, stream.Update, stream.Warning, stream.System, stream.BatchProgress}

// addUpdates adds messages of an external agent to a run that works: POST
// /runs/{runId}/updates with a message, or a list of messages, in either form. A repetition adds nothing.
func (c call) addUpdates(w http.ResponseWriter, r *http.Request, raw []byte) error {
	messages, faults := readUpdates(raw)
	for _, m := range messages {
		if !slices.Contains(forTokens, m.Type) {
			return exchange.Fail(http.StatusForbidden, "forbidden", m.Type.String()+" comes from the run's own agent alone")
		}
	}
	if !c.Actor.IsAgent() {
		return exchange.Fail(http.StatusForbidden, "forbidden", access.OnlyAgents)
	}
	run, err := c.ownRun(r)
	if err == nil {
		err = faults.Err()
	}
	if err != nil {
		return err
	}
	for i := range messages {
		messages[i].Details = withAuthor(messages[i].Details, string(c.Actor))
	}
	key := r.Header.Get("Idempotency-Key")
	if key != "" {
		key = string(c.Actor) + " " + key
	}
	err = c.Runs.AddEvents(r.Context(), run.ID, runs.Added{Messages: messages, Key: key, Most: maxAdded})
	if errors.Is(err, runs.ErrManyEvents) {
		err = exchange.Fail(http.StatusConflict, "too-many", "tokens of agents may add at most "+strconv.Itoa(maxAdded)+" messages to a run")
	}
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusAccepted, map[string]any{"run_id": run.ID, "messages": len(messages)})
}

// withAuthor adds the writer of a message to its details.
func withAuthor(details json.RawMessage, author string) json.RawMessage {
	members := map[string]json.RawMessage{}
	if len(details) > 0 && json.Unmarshal(details, &members) != nil {
		members = map[string]json.RawMessage{"value": details}
	}
	members["author"] = payload.Encode(author)
	raw, _ := json.Marshal(members) // valid JSON always encodes
	return raw
}

// readUpdates reads one message or a list of messages.
func readUpdates(raw []byte) (messages []stream.Message, faults event.FieldErrors) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	faults.Check(len(list) >= 1 && len(list) <= maxUpdates, payload.Whole, "must have 1 to "+strconv.Itoa(maxUpdates)+" messages")
	for i, one := range list[:min(len(list), maxUpdates)] {
		m, err := stream.Parse(one)
		if _, wrong := errors.AsType[*json.UnmarshalTypeError](err); wrong {
			err = errors.New(`must be a message such as {"t":3,"m":"halfway"}, whose members have their types`)
		}
		if err != nil {
			faults.Check(false, "messages["+strconv.Itoa(i)+"]", err.Error())
			continue
		}
		faults.Check(!event.IsDeep(m.Details), "messages["+strconv.Itoa(i)+"].d", "must not be nested more than 100 deep")
		m.Details, err = card.Compile(m.Details)
		faults = append(faults, card.Faults("messages["+strconv.Itoa(i)+"].d", err)...)
		m.Text, m.Workstream, m.ActivityID = event.Text(m.Text), event.Text(m.Workstream), event.Text(m.ActivityID)
		messages = append(messages, m)
	}
	return messages, faults
}

// update takes messages of the run's own agent, which answers later: its answer, its question and the
// end of its run take effect. agents are those with the caller's secret.
func (p Replies) update(w http.ResponseWriter, r *http.Request, raw []byte, agents map[string]bool) error {
	messages, faults := readUpdates(raw)
	for i, m := range messages {
		faults.Check(m.Type != stream.Question, "messages["+strconv.Itoa(i)+"]", "must not be a QUESTION: people ask it")
	}
	var said []stream.Message
	var end *stream.Message
	if len(faults) == 0 {
		said, end, faults = parted(messages)
	}
	if len(faults) > 0 {
		return faults
	}
	run, err := p.run(r, "runId", agents)
	if err != nil {
		return err
	}
	added := runs.Added{Messages: said, Key: r.Header.Get("Idempotency-Key"), Own: true}
	if end != nil {
		err = p.end(r.Context(), run.ID, end, added)
	} else {
		err = p.Runs.AddEvents(r.Context(), run.ID, added)
	}
	if err != nil {
		return err
	}
	if end != nil {
		p.Work.Wake(work.Turns, run.Agent, run.Thread)
	}
	return exchange.Respond(w, http.StatusAccepted, map[string]any{"run_id": r.PathValue("runId"), "messages": len(messages)})
}

// parted returns the messages that only tell of the run, and the one that ends it; nil for none. An IDLE or an ERROR before the end
// ends nothing: the agent has gone on. A question stands below the answer before it. A message that could have no effect in its place
// is a fault, so that none is dropped without a word.
func parted(messages []stream.Message) (said []stream.Message, end *stream.Message, faults event.FieldErrors) {
	var over stream.Type // the COMPLETE or TERMINATED of main, after which it says nothing
	for i, m := range messages {
		isEnd := m.OfMain() && endsRun(m.Type)
		var before stream.Type
		if end != nil {
			before = end.Type
		}
		switch {
		case m.OfMain() && over != 0:
			faults.Check(false, fmt.Sprintf("messages[%d]", i), "must not follow the "+over.String()+", which ends the run")
			continue
		case m.Type == stream.StreamingChunk:
			said = append(said, m.Cut(chunkChars)...)
		case !isEnd:
			said = append(said, m)
		case end == nil, before == stream.Idle:
			end = &m
		case before == stream.Error:
			said, end = append(said, *end), &m
		case before == stream.Answer && m.Type == stream.RequestInput:
			m.Text = end.Text + "\n\n" + m.Text
			end = &m
		case m.Type == stream.Complete || m.Type == stream.Idle: // nothing new after an answer or a question
		default:
			faults.Check(false, fmt.Sprintf("messages[%d]", i), "must not follow the "+before.String()+": a run has one answer, and this would change it")
		}
		if m.Ends() {
			over = m.Type
		}
	}
	return said, end, faults
}

// endsRun reports whether a message of main ends the run of an agent that answers later.
func endsRun(t stream.Type) bool {
	switch t {
	case stream.Answer, stream.RequestInput, stream.Error, stream.Complete, stream.Idle, stream.Terminated:
		return true
	}
	return false
}

// end stores messages of a run's own agent and ends the run with another one: all of them, or none. A COMPLETE and an IDLE mean the text
// that the run has streamed, and say nothing new after an answer.
func (p Replies) end(ctx context.Context, run string, m *stream.Message, added runs.Added) error {
	added.AnswerKeys = []string{fmt.Sprintf("answer %x", sha256.Sum256([]byte(m.Type.String()+" "+m.ActivityID+" "+m.Text)))}
	if added.Key != "" {
		added.AnswerKeys = append(added.AnswerKeys, "answer "+added.Key)
	}
	after := m.Type == stream.Complete || m.Type == stream.Idle
	if after {
		text, activity, err := p.streamed(ctx, run, added.Messages)
		if err != nil {
			return err
		}
		if m.Type == stream.Complete {
			text = cmp.Or(m.Text, text)
		}
		if m.Type == stream.Idle && text == "" {
			return p.add(ctx, run, added) // the agent waits, and so does the run
		}
		if m.Text != "" {
			activity = m.ActivityID
		}
		m = &stream.Message{Type: stream.Answer, Text: text, Details: m.Details, ActivityID: activity}
	}
	added.Answer = m
	err := p.Runs.AddEvents(ctx, run, added)
	switch {
	case errors.Is(err, runs.ErrAnswered) && after:
		added.Answer = nil
		return p.add(ctx, run, added)
	case errors.Is(err, runs.ErrAnswered):
		return exchange.Fail(http.StatusConflict, "answered", err.Error())
	}
	return err
}

// add stores messages of a run's own agent, if there are any.
func (p Replies) add(ctx context.Context, run string, added runs.Added) error {
	if len(added.Messages) == 0 {
		return nil
	}
	return p.Runs.AddEvents(ctx, run, added)
}

// streamed returns the text that a run has streamed, with further messages of its own agent behind, and that no whole message has taken, with
// its activity; see stream.Streamed.
func (p Replies) streamed(ctx context.Context, run string, further []stream.Message) (text, activity string, err error) {
	var said stream.Streamed
	for after := int64(0); ; {
		page, err := p.Runs.RunEvents(ctx, run, after, runPage)
		if err != nil {
			return "", "", err
		}
		for _, e := range page.Events {
			said.Add(e.Message)
			after = e.Seq
		}
		if len(page.Events) < runPage {
			break
		}
	}
	for _, m := range further {
		if m.OfMain() && (m.Type == stream.StreamingChunk || m.Takes()) {
			m.ActivityID = cmp.Or(m.ActivityID, runs.AnswerActivity(run))
		}
		said.Add(m)
	}
	text, activity = said.Left()
	return text, activity, nil
}
