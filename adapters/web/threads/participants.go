package threads

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"parley/adapters/web/access"
	"parley/adapters/web/exchange"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/threads"
)

// maxParticipants bounds the callers that take part in a thread, besides the one that made it.
const maxParticipants = 100

// participant is a user or an agent of a thread.
type participant struct {
	ID   payload.Actor `json:"id"`
	Name string        `json:"name"`
}

// postParticipant lets an actor take part in a thread that the caller has made: POST
// /api/v1/chat/threads/{thread_id}/participants {"actor"}
func (c call) postParticipant(w http.ResponseWriter, r *http.Request, raw []byte) error {
	t, err := c.madeThread(r)
	if err != nil {
		return err
	}
	var actor payload.Actor
	faults := payload.Members(raw, func(m event.Extra) string {
		if m.Key != "actor" {
			return "is not a key of this request; the only one is actor"
		}
		fault := payload.Text(m.Value, (*string)(&actor))
		if fault == "" {
			actor = actor.Lower()
			fault = c.refused(actor)
		}
		return fault
	})
	if len(faults) == 0 {
		faults.Check(actor != "", "actor", "is required")
	}
	if len(faults) > 0 {
		return faults
	}
	known, err := c.Places.Participants(r.Context(), &t)
	if err != nil {
		return err
	}
	if len(known) > maxParticipants && !slices.Contains(known, string(actor)) {
		return exchange.Fail(http.StatusConflict, "too-many", fmt.Sprintf("a thread has at most %d participants besides the caller who made it", maxParticipants))
	}
	added, err := c.Places.AddParticipant(r.Context(), &t, string(actor))
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if !added {
		status = http.StatusOK
	}
	return exchange.Respond(w, status, participant{actor, c.nameOf(actor)})
}

// deleteParticipant ends the part of an actor in a thread. The caller is that actor or has made the
// thread: DELETE /api/v1/chat/threads/{thread_id}/participants/{actor}
func (c call) deleteParticipant(w http.ResponseWriter, r *http.Request) error {
	t, err := c.thread(r)
	if err != nil {
		return err
	}
	actor := payload.Actor(r.PathValue("actor")).Lower()
	switch {
	case !actor.IsValid():
		return event.FieldErrors{{Field: "actor", Message: payload.NoActor}}
	case t.MadeBy != string(c.Actor) && actor != c.Actor:
		return exchange.Fail(http.StatusForbidden, "forbidden", "only the caller who made the thread may remove another one")
	case t.MadeBy == string(actor):
		return exchange.Fail(http.StatusConflict, "conflict", "the caller who made the thread stays in it")
	}
	if err := c.Places.RemoveParticipant(r.Context(), &t, string(actor)); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// readParticipants reads the further participants of a thread, each once. It returns the fault's
// text, or "".
func (c call) readParticipants(value json.RawMessage, into *[]payload.Actor) string {
	if fault := payload.ReadActors(value, into, maxParticipants); fault != "" {
		return fault
	}
	for i, actor := range *into {
		if fault := c.refused(actor); fault != "" {
			return fmt.Sprintf("[%d] %s", i, fault)
		}
	}
	slices.Sort(*into)
	*into = slices.Compact(*into)
	return ""
}

// refused returns the fault of an actor that cannot take part in a thread, or "".
func (c call) refused(actor payload.Actor) string {
	switch {
	case !actor.IsValid():
		return payload.NoActor
	case actor.IsAgent() && !slices.ContainsFunc(c.agents(), is(actor)):
		return "names no agent of this workspace"
	}
	return ""
}

// is returns a function that reports whether a participant is the actor.
func is(a payload.Actor) func(participant) bool {
	return func(p participant) bool { return p.ID == a }
}

// agents returns the workspace's own agents, and the agents outside Parley that have a token.
func (c call) agents() (list []participant) {
	for _, id := range c.Agents {
		list = append(list, participant{payload.AgentActor(id), id})
	}
	for _, token := range c.Tokens {
		if actor := token.ActorIn(c.Workspace); actor.IsAgent() {
			list = append(list, participant{actor, token.Name})
		}
	}
	return list
}

// participants returns everybody who takes part in a thread, and the names that are known.
func (c call) participants(ctx context.Context, t *threads.Thread) ([]participant, error) {
	list, at := []participant{}, map[payload.Actor]int{}
	for _, part := range c.parts(ctx, t) {
		more, err := part()
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			i, known := at[p.ID]
			switch {
			case !known:
				at[p.ID], list = len(list), append(list, p)
			case list[i].Name == "":
				list[i].Name = p.Name
			}
		}
	}
	return list, nil
}

// strangers returns a fault for the first mention of somebody who does not take part in a thread.
func (c call) strangers(ctx context.Context, t *threads.Thread, mentions []payload.Actor) (faults event.FieldErrors, err error) {
	unknown := slices.Clone(mentions)
	for _, part := range c.parts(ctx, t) {
		if len(unknown) == 0 {
			return nil, nil
		}
		known, err := part()
		if err != nil {
			return nil, err
		}
		unknown = slices.DeleteFunc(unknown, func(a payload.Actor) bool { return slices.ContainsFunc(known, is(a)) })
	}
	if len(unknown) > 0 {
		i := slices.Index(mentions, unknown[0])
		faults.Check(false, event.KeyMentions, fmt.Sprintf("[%d] names nobody who takes part in this thread", i))
	}
	return faults, nil
}

// parts return those who take part in a thread, the cheapest part first: the caller who made it and the
// agents, the participants that it names, and the senders of its newest messages.
func (c call) parts(ctx context.Context, t *threads.Thread) []func() ([]participant, error) {
	return []func() ([]participant, error){
		func() ([]participant, error) {
			agents := slices.DeleteFunc(c.agents(), func(p participant) bool { return t.Closed && !c.isOurs(p.ID) })
			if t.MadeBy == "" {
				return agents, nil
			}
			owner := payload.Actor(t.MadeBy)
			return append([]participant{{owner, c.nameOf(owner)}}, agents...), nil
		},
		func() (list []participant, err error) {
			actors, err := c.Places.Participants(ctx, t)
			for _, actor := range actors {
				list = append(list, participant{payload.Actor(actor), c.nameOf(payload.Actor(actor))})
			}
			return list, err
		},
		func() ([]participant, error) { return c.senders(ctx, t) },
	}
}

// senders returns the senders of a thread's newest messages. A caller who has sent messages and does
// not take part any more is none of them.
func (c call) senders(ctx context.Context, t *threads.Thread) (list []participant, err error) {
	senders, err := c.Messages.Senders(ctx, t)
	if err != nil {
		return nil, err
	}
	named, err := c.Places.Participants(ctx, t)
	for _, s := range senders {
		actor := c.sender(s.ID, s.Author)
		isCaller := actor == payload.Actor(s.ID) || c.hasToken(actor)
		if s.Author == messages.BySystem || isCaller && t.MadeBy != "" && (t.Closed || !actor.IsAgent()) && !slices.Contains(named, string(actor)) {
			continue
		}
		m, _ := event.ReadMetadata(s.Metadata) // an unreadable one has no name
		list = append(list, participant{actor, m.SenderDisplayName})
	}
	return list, err
}

// isOurs reports whether an actor is one of the workspace's own agents.
func (c call) isOurs(actor payload.Actor) bool {
	return slices.ContainsFunc(c.Agents, func(id string) bool { return payload.AgentActor(id) == actor })
}

// hasToken reports whether an actor has a token of the workspace.
func (c call) hasToken(actor payload.Actor) bool {
	return slices.ContainsFunc(c.Tokens, func(t access.Token) bool { return t.ActorIn(c.Workspace) == actor })
}

// nameOf returns the name of the actor's token; empty if it has none, or none any more.
func (c call) nameOf(actor payload.Actor) string {
	if actor == c.Actor {
		return c.Token.Name
	}
	for _, token := range c.Tokens {
		if token.ActorIn(c.Workspace) == actor {
			return token.Name
		}
	}
	if i := slices.IndexFunc(c.Agents, func(id string) bool { return payload.AgentActor(id) == actor }); i >= 0 {
		return c.Agents[i]
	}
	return ""
}
