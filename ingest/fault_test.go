package ingest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/record"
	"parley/ingest/journal/storage"
)

// TestStoreFailsWhileAnEnvelopeIsRead proves that the envelope stays pending, that this is no failure
// of it, and that it is recorded after the store has recovered.
func TestStoreFailsWhileAnEnvelopeIsRead(t *testing.T) {
	for name, c := range map[string]struct {
		p     payload
		fails func(e *engine, fails bool)
	}{
		"a write of the adapter's state": {payload{Sender: "U1", Count: true}, func(e *engine, fails bool) { e.refuses.Store(fails) }},
		"a read of the adapter's state":  {payload{Sender: "U1", Count: true}, func(e *engine, fails bool) { e.blind.Store(fails) }},
		"a channel's type":               {payload{Sender: "U1", Channel: "G8"}, func(e *engine, fails bool) { e.blind.Store(fails) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(h *harness) {
				slow := make(chan struct{})
				h.platform.slow["slow"] = slow
				h.work()
				p := c.p
				p.ID, p.Text, p.Thread = "1", "slow", "t"
				if p.Channel == "" {
					p.Channel = "C1"
				}
				receipt := h.accept(p)
				<-h.platform.begun
				advance(unknownFor)
				c.fails(h.engine, true)
				close(slow)
				synctest.Wait()
				c.fails(h.engine, false)
				h.pending(receipt.ID)
				attempts := h.attempts(receipt.ID)
				advance(time.Minute)
				if got := h.result(receipt.ID); got.Message == nil || !strings.HasPrefix(got.Message.Content, "slow") || attempts != 0 {
					t.Errorf("the result is %+v with the message %+v after %d failures", got.Result, got.Message, attempts)
				}
			})
		})
	}
}

// attempts returns the counted failures of an envelope.
func (h *harness) attempts(envelope int64) (n int64) {
	h.Helper()
	if err := h.engine.Engine.ReadOne(h.Context(), func(tx storage.Tx) error {
		_, err := tx.Row([]any{&n}, `SELECT attempts FROM envelopes WHERE id = $1`, envelope)
		return err
	}); err != nil {
		h.Fatal(err)
	}
	return n
}

// TestADeadLetterThatTheStoreRefuses proves that it is reported once, when it is stored, and also if
// the store cannot be read.
func TestADeadLetterThatTheStoreRefuses(t *testing.T) {
	faulty := func(h *harness) (receipt adapters.Receipt, goesOn chan struct{}) {
		goesOn = make(chan struct{})
		h.platform.slow["slow"] = goesOn
		h.work()
		receipt = h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Text: "slow", Trouble: incomplete})
		<-h.platform.begun
		return receipt, goesOn
	}
	inBubble(t, func(h *harness) {
		receipt, goesOn := faulty(h)
		h.engine.refuses.Store(true)
		close(goesOn)
		synctest.Wait()
		if h.mu.Lock(); len(h.results) != 0 {
			t.Errorf("reported before it was stored: %+v", h.results)
		}
		h.mu.Unlock()
		h.engine.refuses.Store(false)
		advance(time.Minute)
		if got := h.result(receipt.ID); got.Disposition != event.Dead || len(h.results) != 1 {
			t.Errorf("results %+v", h.results)
		}
	})
	inBubble(t, func(h *harness) {
		receipt, goesOn := faulty(h)
		h.engine.blind.Store(true)
		close(goesOn)
		if got := h.result(receipt.ID); got.Disposition != event.Dead || got.Kind != event.KindMessage {
			t.Errorf("result %+v of kind %s", got.Result, got.Kind)
		}
		h.engine.blind.Store(false)
	})
}

// TestAnEventWithoutItsMessage proves that a message or an edit without content is settled at once, and
// that an ignored event needs none.
func TestAnEventWithoutItsMessage(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.send(payload{ID: "known"})
		for _, c := range []struct {
			p    payload
			want event.Result
		}{
			{payload{ID: "1", Trouble: wordless}, event.Result{Disposition: event.Dead, Error: "the payload is a message without a message"}},
			{payload{ID: "2", Trouble: setAside}, *event.Ignore(event.ReasonSystemMessage)},
			{payload{ID: "known", Kind: event.KindEdit, Trouble: wordless, Thread: "t"}, *event.Ignore(event.ReasonNoChange)},
			{payload{ID: "known", Kind: event.KindReaction, Trouble: setAside, Thread: "t"}, *event.Ignore(event.ReasonSystemMessage)},
		} {
			if got := h.send(c.p); got.Result != c.want {
				t.Errorf("%+v: %+v", c.p, got.Result)
			}
		}
	})
}

// TestAWorkspaceThatIsNotConfigured proves that its envelopes wait until it is configured again.
func TestAWorkspaceThatIsNotConfigured(t *testing.T) {
	inBubble(t, func(h *harness) {
		slow := make(chan struct{})
		h.platform.slow["slow"] = slow
		h.work()
		h.accept(payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Text: "slow"})
		<-h.platform.begun
		receipt := h.accept(payload{ID: "2", Thread: "t", Channel: "C1", Sender: "U1"})
		h.configure() // during the work on the thread
		close(slow)
		advance(10 * time.Minute)
		h.pending(receipt.ID)
		h.configure(h.workspace("acme"))
		advance(unconfigured)
		if got := h.result(receipt.ID); got.Disposition != event.Stored || h.attempts(receipt.ID) != 0 {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestGapsMayBeOpenedAfterTheStart proves that no envelope gives up its message in the first minute.
func TestGapsMayBeOpenedAfterTheStart(t *testing.T) {
	inBubble(t, func(h *harness) {
		waits := h.accept(payload{ID: "unknown", Kind: event.KindDelete})
		advance(10 * time.Minute)
		h.work()
		advance(envelopes.WaitLimit - time.Second)
		h.pending(waits.ID)
		advance(2 * reviewEvery)
		if got := h.result(waits.ID); got.Reason != event.ReasonUnknownMessage {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestConfigureReadsNewWorkspaces proves that only a new workspace needs the store, and that our
// identity there is not guessed.
func TestConfigureReadsNewWorkspaces(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.engine.blind.Store(true)
		if err := h.Configure(h.Context(), []Workspace{h.workspace("acme")}); err != nil {
			t.Errorf("a known workspace: %v", err)
		}
		if err := h.Configure(h.Context(), []Workspace{h.workspace("acme"), h.workspace("new")}); err == nil {
			t.Error("a new workspace was configured without our identity")
		}
	})
}

// TestSetSelf proves that our identity is written if it is new, and not during a replay.
func TestSetSelf(t *testing.T) {
	inBubble(t, func(h *harness) {
		set := func(workspace, user string) error {
			return h.SetSelf(h.Context(), event.Slack, workspace, event.Self{UserID: user})
		}
		known := set("acme", "UBOT")
		h.engine.refuses.Store(true)
		if err := errors.Join(known, set("acme", "UBOT"), set("gone", "UBOT")); err != nil {
			t.Error(err)
		}
		if err := set("acme", "UNEW"); err == nil {
			t.Error("an identity that is not stored was accepted")
		}
	})
}

// after is a store that calls then once, after its next commit.
type after struct {
	storage.Engine
	then func()
}

func (a *after) Write(ctx context.Context, options storage.WriteOptions, fn func(storage.Tx) error) error {
	err := a.Engine.Write(ctx, options, fn)
	if then := a.then; then != nil {
		a.then = nil
		then()
	}
	return err
}

// TestOurIdentityComesAfterTheAccept proves that an envelope whose keys need it is recorded at once if
// it becomes known between the durable accept and the intake.
func TestOurIdentityComesAfterTheAccept(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.engine.Engine = &after{h.engine.Engine, func() {
			if err := h.SetSelf(h.Context(), event.Slack, "acme", event.Self{UserID: "UBOT"}); err != nil {
				t.Error(err)
			}
		}}
		if got := h.send(payload{ID: "1", Needs: "user"}); got.Disposition != event.Stored {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestATypeThatWasNotStored proves that a refused payload teaches nothing: the next one stores the type.
func TestATypeThatWasNotStored(t *testing.T) {
	inBubble(t, func(h *harness) {
		typed, typeless := payload{ID: "1", Thread: "t", Channel: "G7", Type: event.ChannelGroup}, payload{ID: "3", Thread: "t", Channel: "G7"}
		h.engine.refuses.Store(true)
		if _, err := h.Accept(h.Context(), h.envelope(typed)); err == nil {
			t.Error("the store has not refused")
		}
		h.engine.refuses.Store(false)
		h.accept(typed)
		next := restart(h)
		next.engine.blind.Store(true)
		if _, err := next.Accept(next.Context(), next.envelope(typeless)); err == nil {
			t.Error("a type was guessed")
		}
		next.engine.blind.Store(false)
		next.work()
		if got := next.send(typeless); got.Thread != "slack:acme:tgroup" {
			t.Errorf("the message is in %s", got.Thread)
		}
	})
}

// TestTypesInMemory proves that they are bounded, and which ones are news.
func TestTypesInMemory(t *testing.T) {
	m := &memory{channels: map[string]knownType{}}
	for i := range channelLimit + 1 {
		m.remember(event.Channel{ID: fmt.Sprint(i), Type: event.ChannelGroup})
	}
	if n := len(m.channels); n > channelLimit {
		t.Errorf("%d channels", n)
	}
	m.remember(event.Channel{ID: "G7", Type: event.ChannelGroup})
	for channel, want := range map[event.Channel]bool{
		{ID: "G7", Type: event.ChannelGroup}: false, {ID: "G7", Type: event.ChannelDirect}: true, {ID: "G7"}: false, {Type: event.ChannelGroup}: false,
		{ID: "G8", Type: event.ChannelGroup}: true,
	} {
		if got := m.news(channel); got != want {
			t.Errorf("%+v is news: %v", channel, got)
		}
	}
}

// TestRuns proves what a platform learns about an envelope.
func TestRuns(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		for _, c := range []struct {
			p    payload
			want bool
		}{
			{payload{ID: "1", Mention: true}, true}, {payload{ID: "2"}, false}, {payload{ID: "3", Text: "/status", Mention: true}, true},
			{payload{ID: "4", Bot: true}, false},
		} {
			c.p.Sender, c.p.Channel, c.p.Thread = "U1", "C1", "t"
			if runs, known := h.Runs(h.Context(), h.accept(c.p).ID); runs != c.want || !known {
				t.Errorf("%+v: %v, %v", c.p, runs, known)
			}
		}
		ended, cancel := context.WithCancel(h.Context())
		cancel()
		if runs, known := h.Runs(ended, 99); runs || known {
			t.Errorf("an unknown envelope: %v, %v", runs, known)
		}
		h.engine.blind.Store(true)
		if settled, err := h.Wait(h.Context(), 1); settled != nil || err == nil {
			t.Errorf("a store that cannot be read: %+v, %v", settled, err)
		}
	})
}

// TestRefusing proves that only a failure of the store counts.
func TestRefusing(t *testing.T) {
	for err, want := range map[error]bool{
		storage.ErrUnavailable: true, storage.ErrUnclear: false, fmt.Errorf("%w: %w", storage.ErrUnavailable, storage.ErrUnclear): false, context.Canceled: false,
	} {
		inBubble(t, func(h *harness) {
			h.refused("acme", err)
			if (h.Refusing() != nil) != want {
				t.Errorf("after %v: %v", err, !want)
			}
		})
	}
}

// TestAnEditWithoutItsChannel proves that the channel of its thread decides who is admitted, and that
// the stored author and channel fill in only what the edit leaves out.
func TestAnEditWithoutItsChannel(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		h.send(payload{ID: "1", Text: "one"})
		edit := func(revision, sender, channel string) record.Result {
			return h.result(h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: revision, Sender: sender, Channel: channel, Text: revision}).ID)
		}
		for _, c := range [][2]string{{"U2", ""}, {"", "C1"}} {
			got := edit("by "+c[0], c[0], c[1])
			if m, err := event.ReadMetadata(got.Message.Metadata); err != nil || m.ChannelExternalID != "C1" || m.SenderID != "slack:"+max(c[0], "U2") {
				t.Errorf("%v: %s, %v", c, got.Message.Metadata, err)
			}
		}
		h.settings.Policy.AllowChannels = []string{"C2"}
		h.configure(h.workspace("acme"))
		if got := edit("refused", "U1", ""); got.Reason != event.ReasonChannelRefused {
			t.Errorf("the channel is refused: %+v", got.Result)
		}
		h.settings.Policy.AllowChannels = nil
		h.channels["C1"] = Settings{Agent: "helper", Policy: Policy{AllowUsers: []string{}}}
		if got := edit("nobody", "U1", ""); got.Reason != event.ReasonUserRefused {
			t.Errorf("the channel admits nobody: %+v", got.Result)
		}
	})
}

// TestAnEditWithoutSenderWaits for a message that is not stored yet.
func TestAnEditWithoutSenderWaits(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		edit := h.accept(payload{Kind: event.KindEdit, ID: "1", Revision: "r1", Thread: "t", Channel: "C1", Text: "new"})
		h.pending(edit.ID)
		h.send(payload{ID: "1", Text: "old"})
		if got := h.result(edit.ID); got.Disposition != event.Updated {
			t.Errorf("result %+v", got.Result)
		}
	})
}

// TestARecipientIsAsked if the message names an agent that may be asked. A message for a bot of
// another program asks nobody.
func TestARecipientIsAsked(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.work()
		ask := func(recipient string) string {
			return h.send(payload{ID: fmt.Sprint(recipient, h.settings.Asks != nil), Mention: true, Recipient: recipient}).Message.Agent
		}
		got := []string{ask("bot:other")}
		h.settings.Asks = func(agent string) bool { return agent == "other" }
		for _, recipient := range []string{"bot:other", "other", "bot:gone"} {
			got = append(got, ask(recipient))
		}
		if want := []string{"helper", "other", "helper", ""}; !slices.Equal(got, want) {
			t.Errorf("asked %v, want %v", got, want)
		}
	})
}

// TestTheAgeOfALateMessage has a bound of its own. The run of a client does not wait for further messages.
func TestTheAgeOfALateMessage(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.LateAge, h.settings.Coalesce, h.settings.CoalesceMax = 24*time.Hour, time.Second, time.Second
		h.work()
		old := payload{ID: "1", Thread: "t", Channel: "C1", Sender: "U1", Mention: true, Age: 2 * time.Hour}
		if got := h.send(old); got.Reason != event.ReasonTooOld {
			t.Errorf("a live message: %+v", got.Result)
		}
		old.ID = "2"
		receipt, err := h.Accept(h.Context(), h.late(old))
		if got := h.result(receipt.ID); err != nil || got.Reason != event.ReasonMention || !got.TurnDue.After(time.Now()) {
			t.Errorf("a late message: %+v, due %v: %v", got.Result, got.TurnDue, err)
		}
		if got := h.send(payload{ID: "3", Thread: "other", Mention: true, Run: "run-1"}); got.TurnDue.After(time.Now()) {
			t.Errorf("the run of a client is due at %v", got.TurnDue)
		}
	})
}

// TestWithoutBackfillAPolledMessageIsNew sends messages that a poller has read. Without backfill,
// those from before the start are too old.
func TestWithoutBackfillAPolledMessageIsNew(t *testing.T) {
	inBubble(t, func(h *harness) {
		h.settings.LateAge = 0
		h.work()
		advance(10 * time.Minute)
		for age, want := range map[time.Duration]string{time.Minute: event.ReasonMention, 20 * time.Minute: event.ReasonTooOld} {
			p := payload{ID: age.String(), Thread: "t", Channel: "C1", Sender: "U1", Mention: true, Age: age}
			receipt, err := h.Accept(h.Context(), h.late(p))
			if got := h.result(receipt.ID); err != nil || got.Reason != want {
				t.Errorf("a message of the age %v: %+v: %v", age, got.Result, err)
			}
		}
	})
}
