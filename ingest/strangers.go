package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/wake"
	"parley/ingest/work"
)

const (
	// strangersEvery is how often a node looks for questions and decisions that another one may have stored.
	strangersEvery = 2 * time.Second
	// strangerWithin is the time in which an approver must answer.
	strangerWithin = 24 * time.Hour
	// strangersBy is the author of the questions.
	strangersBy = "operator:strangers"
)

// Messenger writes to approvers.
type Messenger interface {
	// Speak posts a message, once by its key.
	Speak(ctx context.Context, s adapters.Speech) (record.Post, bool, error)
	// Close takes the buttons from the post of a message that Speak has made from s, and replaces its text by that of s. It may be called again. It does
	// nothing if there is no such post.
	Close(ctx context.Context, s adapters.Speech) error
}

// Strangers are the people whom no list admits and about whom approvers are asked. All nodes share them.
type Strangers struct {
	store   *strangers.Strangers
	posts   Messenger
	always  atomic.Pointer[map[string]map[string]bool] // by workspace and sender_id
	changed wake.Signal
	idle    atomic.Bool // no workspace asks, and no decision is due: nothing is read until Changed
}

// NewStrangers returns the strangers in a store. It admits no stranger before Read.
func NewStrangers(store *strangers.Strangers, posts Messenger) *Strangers {
	return &Strangers{store: store, posts: posts, changed: wake.NewSignal()}
}

// Changed says that a stranger has asked, that it was decided about one, or that the workspaces have changed.
func (s *Strangers) Changed() {
	if s != nil {
		s.idle.Store(false)
		s.changed.Set()
	}
}

// admitted returns the people of a workspace who are always admitted. The caller must not change it.
func (s *Strangers) admitted(workspace string) map[string]bool {
	if s == nil || s.always.Load() == nil {
		return nil
	}
	return (*s.always.Load())[workspace]
}

// Read reads the people who are always admitted.
func (s *Strangers) Read(ctx context.Context) error {
	all, err := s.store.Admitted(ctx)
	if err == nil {
		s.always.Store(&all)
	}
	return err
}

// ServeStrangers asks approvers about strangers and does what was decided, until ctx ends. It may run on every node.
func (in *Ingest) ServeStrangers(ctx context.Context) error {
	in.Strangers.changed.Loop(ctx, strangersEvery, func(ctx context.Context) {
		if err := in.reviewStrangers(ctx); err != nil && ctx.Err() == nil {
			in.Log.Warn("strangers wait, because the store fails", "err", err)
		}
	})
	return nil
}

// asksAboutStrangers reports whether a workspace asks about strangers.
func (in *Ingest) asksAboutStrangers() bool {
	for _, w := range *in.workspaces.Load() {
		if w.config.AsksAboutStrangers {
			return true
		}
	}
	return false
}

// reviewStrangers looks once at the strangers who are due.
func (in *Ingest) reviewStrangers(ctx context.Context) error {
	if in.Strangers.idle.Load() {
		return nil
	}
	if !in.asksAboutStrangers() {
		in.Strangers.idle.Store(true) // before the read, so that Changed meanwhile ends it
		if waits, err := in.Strangers.store.Wait(ctx); err != nil || waits {
			in.Strangers.idle.Store(false)
		}
	}
	if err := in.Strangers.Read(ctx); err != nil {
		return err
	}
	due, err := in.Strangers.store.Due(ctx)
	for i := range due {
		err = errors.Join(err, in.reviewStranger(ctx, &due[i]))
	}
	return err
}

// reviewStranger does what is due about a stranger. Each step may be repeated, also by several nodes.
func (in *Ingest) reviewStranger(ctx context.Context, s *strangers.Stranger) error {
	store := in.Strangers.store
	switch until := s.ChangedAt.Add(strangerWithin); {
	case s.State == strangers.Asked && !s.Told:
		if err := in.toApprovers(ctx, s, in.Strangers.speak); err != nil {
			return err
		}
		return store.Told(ctx, s.Question, until)
	case s.State == strangers.Asked:
		if err := store.Expire(ctx, s.Question); err != nil {
			return err
		}
		in.Strangers.Changed()
		return nil
	}
	err := in.toApprovers(ctx, s, in.Strangers.posts.Close)
	switch {
	case err != nil:
		return err
	case s.State == strangers.Once, s.State == strangers.Always:
		var thread int64
		if thread, err = in.Journal.Envelopes.Again(ctx, s.Envelope); thread != 0 {
			in.Work.Wake(work.Intake, "", thread)
		}
	default:
		err = in.Journal.Envelopes.Drop(ctx, s.Envelope)
	}
	if err != nil {
		return err
	}
	return store.Settle(ctx, s)
}

// speak asks an approver.
func (s *Strangers) speak(ctx context.Context, speech adapters.Speech) error {
	_, _, err := s.posts.Speak(ctx, speech)
	return err
}

// toApprovers does something about the direct message of each approver. It leaves out an approver whom the bot cannot reach, with a
// line in the log. Only an error of the store is one.
func (in *Ingest) toApprovers(ctx context.Context, s *strangers.Stranger, do func(ctx context.Context, speech adapters.Speech) error) error {
	if s.Question == "" {
		return nil
	}
	text, mentions := questionAbout(s)
	for _, user := range s.Approvers {
		err := do(ctx, adapters.Speech{
			Workspace: s.Workspace, To: adapters.Target{User: user}, Text: text, Mentions: mentions, By: strangersBy, Key: s.Question + " " + user, Buttons: buttonsOf(s),
		})
		_, isFault := errors.AsType[event.FieldErrors](err)
		switch {
		case err == nil:
		case isFault || errors.Is(err, storage.ErrNotFound):
			in.Log.Warn("an approver cannot be asked about a stranger", "workspace", s.Workspace, "approver", user, "err", err)
		default:
			return fmt.Errorf("ask %s about a stranger: %w", user, err)
		}
	}
	return nil
}

// buttonsOf returns the buttons of a question; none if it is not open.
func buttonsOf(s *strangers.Stranger) (list []adapters.Button) {
	if s.State != strangers.Asked {
		return nil
	}
	for n, verdict := range verdicts {
		list = append(list, adapters.Button{ID: strangerButton(s.Question, n), Label: verdict.label})
	}
	return list
}

// maxStrangerName bounds the name of a stranger in a question, in characters.
const maxStrangerName = 80

// questionAbout returns the text of a question or of its answer, and the mentions in it. The name is a stranger's: it is shown as code,
// which is no markup.
func questionAbout(s *strangers.Stranger) (text string, mentions []string) {
	who := "`" + s.SenderID + "`"
	if name := event.Line(strings.ReplaceAll(s.Name, "`", "'"), maxStrangerName); name != "" {
		who = "`" + name + "` (" + who + ")"
	}
	switch s.State {
	case strangers.Asked:
		return who + " wants to talk to me. *Once* answers the message that waits, *Always* also each later one, *No* none.", nil
	case strangers.Expired:
		return who + " wanted to talk to me. Nobody answered within a day, so this is closed. The next message asks again.", nil
	case strangers.Once, strangers.Always, strangers.No:
	}
	by := "`" + s.By + "`"
	if _, id, ok := strings.Cut(s.By, ":"); ok && !event.IsOperator(s.By) {
		by = "<@" + id + ">"
		mentions = []string{by}
	}
	return who + " wanted to talk to me. The answer of " + by + ": " + string(s.State) + ".", mentions
}
