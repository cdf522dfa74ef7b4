package journaltest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

func importPromises() []promise {
	return []promise{
		{"imported messages are finished turns before the live ones", importedTurns},
		{"an import of messages where they are adds nothing", importedWhereItIs},
		{"an id is imported once in a workspace", importedOnce},
		{"an import keeps the waiting messages of its thread", importedBesideLive},
		{"an import answers no live question, and no imported one twice", importedApart},
		{"a thread is found by its UUID in its own workspace", threadByUUID},
		{"imported turns are read beyond one query", manyImported},
	}
}

// past returns a message for an import; an uppercase content is our own.
func (f *fixture) past(id, content string) record.ImportMessage {
	f.clock.advance(time.Second)
	own := content == strings.ToUpper(content)
	return record.ImportMessage{ID: id, Own: own, Content: content, Metadata: []byte("{}"), SenderID: "slack:U1", CreatedAt: f.clock.Now()}
}

// imports imports messages into the first thread.
func (f *fixture) imports(list ...record.ImportMessage) int {
	f.Helper()
	added, err := f.Recorder.Import(f.ctx, record.ImportThread{
		Key: threadKey(1), ID: f.threadID(threadKey(1)), Workspace: workspace, Platform: event.Slack, Channel: channel, Agent: agent,
	}, list)
	f.must(err)
	return added
}

// turnsOf returns the turns of a run's transcript, as "context | messages | reply".
func (f *fixture) turnsOf(run *runs.Run, turns int) []string {
	f.Helper()
	list, err := f.Runs.Transcript(f.ctx, run, runs.Window{Turns: turns, Bytes: 10_000, Context: 20})
	f.must(err)
	return each(list, func(t runs.Turn) string {
		context := contents(t.Context)
		if t.Root != nil {
			context = append([]string{t.Root.Content}, context...)
		}
		reply := ""
		if t.Reply != nil {
			reply = t.Reply.Content
		}
		return strings.Join(context, ",") + "|" + strings.Join(contents(t.Messages), ",") + "|" + reply
	})
}

func importedTurns(f *fixture) {
	own := uuid.NewString()
	same(f, "added", f.imports(f.past("1", "WELCOME"), f.past(own, "[a]: one"), f.past("3", "ONE")), 3)
	same(f, "added", f.imports(f.past("4", "two"), f.past("5", "three")), 2)
	same(f, "the answer in a further import", f.imports(f.past("6", "THREE"), f.past("7", "AND MORE")), 2)
	same(f, "due", f.due(turns), nil)
	list := f.list(threadKey(1))
	same(f, "a UUID is kept", list[1].UUID, own)
	same(f, "another id becomes one", uuid.Validate(list[0].UUID), nil)
	same(f, "version", list[0].Version, 0)
	same(f, "our sender", list[0].SenderID, "agent:"+agent)
	same(f, "freshness", list[0].Freshness == nil && list[2].Freshness == nil, true)
	f.message(threadKey(1), said("C1/1", "now"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"||WELCOME", "|[a]: one|ONE", "|two|", "|three|THREE", "||AND MORE", "|now|"})
	threads, err := f.Messages.Threads(f.ctx, workspace, "", 10)
	f.must(err)
	same(f, "messages of the thread", threads[0].Messages, 8)
}

func importedOnce(f *fixture) {
	one, two := f.past("1", "one"), f.past("2", "ONE")
	same(f, "added", f.imports(one, one), 1)
	same(f, "added", f.imports(one, two), 1)
	same(f, "added", f.imports(one, two), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 one", "2 ONE"})
	f.message(threadKey(1), said("C1/1", "now"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"|one|ONE", "|now|"})
}

func importedBesideLive(f *fixture) {
	old := []record.ImportMessage{f.past("1", "one"), f.past("2", "ONE")}
	f.clock.advance(time.Second)
	f.message(threadKey(1), said("C1/1", "heard"), passive)
	f.message(threadKey(1), said("C1/2", "now"), triggers)
	f.imports(old...)
	run := f.begin(threadKey(1))
	same(f, "asked", contents(run.Messages), []string{"now"})
	same(f, "turns", f.turnsOf(run, 50), []string{"heard|one|ONE", "|now|"})
	same(f, "result", f.commit(run, answer("Hello.")).State, runs.Done)
}

func importedWhereItIs(f *fixture) {
	f.message(threadKey(1), said("C1/1", "now"), triggers)
	f.commit(f.begin(threadKey(1)), answer("Hello."))
	list := f.list(threadKey(1))
	exported := []record.ImportMessage{f.past(list[0].UUID, "now"), f.past(list[1].UUID, "HELLO"), f.past("3", "more")}
	same(f, "added", f.imports(exported...), 1)
	same(f, "added again", f.imports(exported...), 0)
	same(f, "thread", f.lines(threadKey(1)), []string{"1 now", "2 Hello.", "3 more"})
	added, err := f.Recorder.Import(f.ctx, record.ImportThread{
		Key: threadKey(2), ID: f.threadID(threadKey(2)), Workspace: "other", Platform: event.Slack, Channel: channel, Agent: agent,
	}, exported[:1])
	f.must(err)
	same(f, "into another workspace", added, 1)
	same(f, "with its id", f.count("messages WHERE id = '"+list[0].UUID+"'"), 1)
}

func importedApart(f *fixture) {
	f.message(threadKey(1), said("C1/1", "now"), triggers)
	run := f.begin(threadKey(1))
	f.imports(f.past("1", "WELCOME"))
	f.imports(f.past("2", "AND MORE"))
	f.commit(run, answer("Hello."))
	f.message(threadKey(1), said("C1/2", "later"), triggers)
	same(f, "turns", f.turnsOf(f.begin(threadKey(1)), 50), []string{"|now|Hello.", "||WELCOME", "||AND MORE", "|later|"})
}

func threadByUUID(f *fixture) {
	f.imports(f.past("1", "one"))
	found, err := f.Threads.Thread(f.ctx, workspace, f.threadID(threadKey(1)))
	f.must(err)
	same(f, "in its workspace", found.Key, threadKey(1))
	_, err = f.Threads.Thread(f.ctx, "other", f.threadID(threadKey(1)))
	f.fails("in another workspace", err, storage.ErrNotFound)
}

func manyImported(f *fixture) {
	var list []record.ImportMessage
	for i := range 25 {
		list = append(list, f.past(fmt.Sprint("q", i), fmt.Sprint("q", i)), f.past(fmt.Sprint("a", i), fmt.Sprint("A", i)))
	}
	f.imports(list...)
	f.message(threadKey(1), said("C1/1", "now"), triggers)
	run := f.begin(threadKey(1))
	got := f.turnsOf(run, 50)
	same(f, "turns", len(got), 26)
	same(f, "the first", got[0], "|q0|A0")
	same(f, "a window", f.turnsOf(run, 3), []string{"|q23|A23", "|q24|A24", "|now|"})
}
