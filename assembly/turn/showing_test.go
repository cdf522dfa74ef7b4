package turn_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/assembly/turn"
	"parley/ingest/stream"
)

// streams emits messages in order.
func streams(messages ...stream.Message) script {
	return func(_ context.Context, emit func(stream.Message) error) error {
		for _, m := range messages {
			if err := emit(m); err != nil {
				return err
			}
		}
		return nil
	}
}

func token(text string) stream.Message {
	return stream.Message{Type: stream.StreamingChunk, Text: text}
}

// TestTheAnswersTokensAreShown, and no other messages of the agent.
func TestTheAnswersTokensAreShown(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{streams(
			stream.Message{Type: stream.Thought, Text: "let me see"},
			token("It "), stream.Message{Type: stream.StreamingChunk, Workstream: "other", Text: "aside"}, token("rains."),
			stream.Message{Type: stream.Answer, Text: "It rains."},
		)}
		d.asks("C1/1", "what about <@U0MARA> and <#C1|garden>, 1 < 2 <@>, <@U0MARA>?")
		d.outcomes()
		if diff := cmp.Diff([][]string{{"It ", "rains."}}, d.shown); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]string{{"<#C1|garden>", "<@U0MARA>"}}, d.mentions); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnInventedTokenStaysPlain, although the agent reads it in its own earlier answer.
func TestAnInventedTokenStaysPlain(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		d.agent.does = []script{answers("Ask <@U0NOBODY>, not <@U0MARA>."), answers("As I said, <@U0NOBODY>.")}
		d.asks("C1/1", "who knows? <@U0MARA>?")
		d.outcomes()
		d.asks("C1/2", "who?")
		d.outcomes()
		if diff := cmp.Diff([][]string{{"<@U0MARA>"}, {"<@U0MARA>"}}, d.mentions); diff != "" {
			t.Error(diff)
		}
	})
}

// TestShow checks which messages people see, and that the answer is posted in any case.
func TestShow(t *testing.T) {
	for name, c := range map[string]struct {
		show, notes []string
		grows       [][]string
	}{
		"the answer":     {turn.DefaultShow(false), nil, [][]string{{"It rains."}}},
		"all":            {turn.Shown(), []string{"hm", "first this", "half", "search"}, [][]string{{"It rains."}}},
		"updates alone":  {[]string{turn.ShowUpdate}, []string{"half"}, [][]string{nil}},
		"plans and more": {[]string{turn.ShowPlan, turn.ShowTool}, []string{"first this", "search"}, [][]string{nil}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.profile.Show = c.show }, func(d *fixture) {
				d.agent.does = []script{streams(
					said(stream.Thought, "", "hm"), said(stream.Plan, "", "first this"), said(stream.Update, "", "half"), said(stream.Update, "", ""),
					stream.Message{Type: stream.Update, Text: "search", Details: []byte(`{"tool":"search"}`)}, said(stream.Warning, "", "careful"),
					token("It rains."), stream.Message{Type: stream.StreamingChunk, Workstream: "other", Text: "aside", Details: []byte(`{"tool":"search"}`)},
					stream.Message{Type: stream.Answer, Text: "It rains.", Details: []byte(`{"tool":"search"}`)},
				)}
				d.asks("C1/1", "so?")
				same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
				same(t, "notes", d.notes, c.notes)
				same(t, "answer", d.shown, c.grows)
				same(t, "posts", d.deliveries(), []string{"It rains."})
			})
		})
	}
}

// TestTheSignHasWhatNoPlanShows checks that progress, warnings and errors are words of the sign until the run has a plan, whose post has
// them.
func TestTheSignHasWhatNoPlanShows(t *testing.T) {
	inBubble(t, func(d *fixture) { d.profile.Show = nil }, func(d *fixture) {
		batch := stream.Message{Type: stream.BatchProgress, Text: "mails", Details: []byte(`{"completed":1,"total":2}`)}
		d.agent.does = []script{streams(
			said(stream.Warning, "", "careful"), batch, said(stream.System, "", "hidden"), said(stream.Error, "", "one failed"), said(stream.Plan, "", "first this"),
			batch, said(stream.Warning, "", "later"), stream.Message{Type: stream.Answer, Text: "It rains."},
		)}
		d.asks("C1/1", "so?")
		same(t, "outcomes", d.outcomes(), []turn.Outcome{turn.Answered})
		same(t, "notes", d.notes, []string{"careful", "▰▰▰▰▰▱▱▱▱▱ 50% (1 of 2): mails", "one failed", "first this"})
	})
}

// TestEachAttemptHasItsOwnPreview checks an attempt after a failed one.
func TestEachAttemptHasItsOwnPreview(t *testing.T) {
	inBubble(t, nil, func(d *fixture) {
		broken := func(ctx context.Context, emit func(stream.Message) error) error {
			_ = emit(token("half of "))
			return errors.New("cut off")
		}
		d.agent.does = []script{broken, streams(token("whole"), stream.Message{Type: stream.Answer, Text: "whole"})}
		d.asks("C1/1", "so?")
		pass(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([][]string{{"half of "}, {"whole"}}, d.shown); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAnAgentsFilesArePosted after its text. A file that cannot be stored is left out. A
// malformed file is the agent's failure.
func TestAnAgentsFilesArePosted(t *testing.T) {
	for name, step := range map[string]struct {
		details string
		want    turn.Outcome
		files   []string
	}{
		"kept":      {`{"files":[{"name":"plot.png","mime_type":"image/png","data":"aGk="},{"name":"too large","data":"aGk="}]}`, turn.Answered, []string{"plot.png"}},
		"none":      {`{"sources":[]}`, turn.Answered, nil},
		"malformed": {`{"files":[{"name":"plot.png","data":"?"}]}`, turn.Failed, nil},
		"nameless":  {`{"files":[{"data":"aGk="}]}`, turn.Failed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(d *fixture) {
				d.agent.does = []script{streams(stream.Message{Type: stream.Answer, Text: "here", Details: []byte(step.details)})}
				d.asks("C1/1", "plot it")
				if got := d.outcomes(); got[0] != step.want {
					t.Fatalf("%v: %v", got, d.reports[0].Err)
				}
				files := d.files()
				if diff := cmp.Diff(step.files, files); diff != "" {
					t.Error(diff)
				}
				said := slices.ContainsFunc(d.events(d.agent.inputs[0].RunID), func(e string) bool { return strings.HasSuffix(e, "The file too large was refused and not copied.") })
				same(t, "the stream tells of a file that is left out", said, name == "kept")
			})
		})
	}
}

// TestCards checks the card behind an answer: shown, without further text, and of an agent whose cards are not shown.
func TestCards(t *testing.T) {
	const details = `{"ui_hints":{"title":"Room 7","actions":["Book"]}}`
	for name, c := range map[string]struct {
		show        []string
		say         []stream.Message
		posts       []string
		reply, card string
		outcome     turn.Outcome
	}{
		"text and card":   {turn.DefaultShow(true), []stream.Message{{Type: stream.Answer, Text: "Here.", Details: []byte(details)}}, []string{"Here.", "Room 7\n\\[Book]"}, "Here.", "Room 7\n[Book]", turn.Answered},
		"a card alone":    {turn.DefaultShow(true), []stream.Message{{Type: stream.Answer, Details: []byte(details)}}, []string{"", "Room 7\n\\[Book]"}, "Room 7\n[Book]", "", turn.Answered},
		"of the end":      {turn.DefaultShow(true), []stream.Message{{Type: stream.Complete, Text: "Here.", Details: []byte(details)}}, []string{"Here.", "Room 7\n\\[Book]"}, "Here.", "Room 7\n[Book]", turn.Answered},
		"a later answer":  {turn.DefaultShow(true), []stream.Message{{Type: stream.Answer, Text: "x", Details: []byte(details)}, {Type: stream.Answer, Text: "Here."}}, []string{"Here."}, "Here.", "", turn.Answered},
		"not shown":       {[]string{turn.ShowAnswer}, []stream.Message{{Type: stream.Answer, Text: "Here.", Details: []byte(details)}}, []string{"Here."}, "Here.", "", turn.Answered},
		"the quiet reply": {turn.DefaultShow(true), []stream.Message{{Type: stream.Answer, Text: turn.DefaultQuietReply, Details: []byte(details)}}, nil, "", "", turn.Quiet},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(d *fixture) { d.profile.Show, d.profile.QuietReply = c.show, turn.DefaultQuietReply }, func(d *fixture) {
				d.agent.does = []script{streams(c.say...)}
				d.asks("C1/1", "so?")
				same(t, "outcomes", d.outcomes(), []turn.Outcome{c.outcome})
				same(t, "posts", d.deliveries(), c.posts)
				var reply string
				last := d.reports[len(d.reports)-1]
				if last.Reply != nil {
					reply = last.Reply.Content
				}
				same(t, "reply and card", []string{reply, last.Card}, []string{c.reply, c.card})
			})
		})
	}
}
