package threads

import (
	"context"
	"errors"

	"parley/adapters/web/access"
	"parley/adapters/web/payload"
	"parley/ingest/event"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/threads"
)

// Uses returns storage.ErrNotFound if a caller may not use a thread of a workspace that it reads.
// madeBy is the client that made the thread; empty for none. A client's thread is for those who take
// part in it, and for those who may list it. That of a workstream is for the latter alone.
func (a API) Uses(ctx context.Context, c access.Caller, workspace, madeBy, threadID string) error {
	actor := c.Token.ActorIn(c.Workspace)
	if madeBy == string(actor) || c.Lists(workspace) || madeBy == "" && !threads.IsDerived(threadID) {
		return nil
	}
	t, err := a.Places.Thread(ctx, workspace, threadID)
	if err == nil && isPrivate(&t) {
		err = takesPart(ctx, a.Places, actor, &t)
	}
	return err
}

// Reads is Uses for a caller that only reads: the thread of a workstream is also for those who may use the thread from which it was
// launched, because they get its messages with those of the run that launched it.
func (a API) Reads(ctx context.Context, c access.Caller, workspace, madeBy, threadID string) error {
	err := a.Uses(ctx, c, workspace, madeBy, threadID)
	if !errors.Is(err, storage.ErrNotFound) || !threads.IsDerived(threadID) {
		return err
	}
	t, err := a.Places.Thread(ctx, workspace, threadID)
	if err != nil || !event.IsWorkstream(t.Key) {
		return storage.ErrNotFound
	}
	root, err := a.Children.Root(ctx, t.Key)
	if err == nil {
		threadID, err = a.Places.ThreadID(ctx, root)
	}
	if err == nil {
		t, err = a.Places.Thread(ctx, workspace, threadID)
	}
	if err != nil {
		return err
	}
	return a.Uses(ctx, c, workspace, t.MadeBy, threadID)
}

// Admit returns an error if the caller may not use the thread of a workspace with an id; there may
// be none yet. Another client's thread is like an unknown one.
func (a API) Admit(ctx context.Context, c access.Caller, workspace, id string) error {
	if c.Lists(workspace) {
		return nil
	}
	t, err := a.Places.Thread(ctx, workspace, id)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil
	case err == nil && isPrivate(&t):
		err = takesPart(ctx, a.Places, c.Token.ActorIn(c.Workspace), &t)
	}
	return err
}

// isPrivate reports whether not every caller of a thread's workspace may use it.
func isPrivate(t *threads.Thread) bool { return t.MadeBy != "" || event.IsWorkstream(t.Key) }

// seenThread returns the thread with an id, if the caller may read and write it, or else
// storage.ErrNotFound.
func (c call) seenThread(ctx context.Context, id string) (threads.Thread, error) {
	t, err := c.Places.Thread(ctx, c.Workspace, id)
	if err == nil {
		err = c.sees(ctx, &t)
	}
	return t, err
}

// sees returns storage.ErrNotFound if the caller may not read and write a thread of its workspace.
func (c call) sees(ctx context.Context, t *threads.Thread) error {
	return takesPart(ctx, c.Places, c.Actor, t)
}

// takesPart returns storage.ErrNotFound if an actor does not take part in a thread of its workspace.
// An agent takes part in each thread that is not for its participants alone.
func takesPart(ctx context.Context, store *threads.Threads, actor payload.Actor, t *threads.Thread) error {
	if event.IsWorkstream(t.Key) { // no client takes part in it, and a message of one would not reach it
		return storage.ErrNotFound
	}
	if t.MadeBy == string(actor) || actor.IsAgent() && !t.Closed {
		return nil
	}
	yes, err := store.TakesPart(ctx, t, string(actor))
	if err == nil && !yes {
		err = storage.ErrNotFound
	}
	return err
}
