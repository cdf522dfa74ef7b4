package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"parley/adapters/agent"
	"parley/adapters/agent/acp/acptest"
	"parley/adapters/agent/agenttest"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/config/secret"
	"parley/ingest/stream"
	"parley/ingest/trace"
)

// Of the promises of agenttest, those about framing, refusals, broken streams, lost connections, hangs, floods, secrets, notes and outdated inputs have their
// tests here: a line takes the place of an event, an error of JSON-RPC that of a status, and the end of a process that of a connection. Those about the
// run's token and about the transport of HTTP do not apply: a program gets no token, because its servers of tools are those of its whole session.

func TestMain(m *testing.M) {
	acptest.Main()
	os.Exit(m.Run())
}

// fixture is an agent whose program is this binary, with the sessions of its threads.
type fixture struct {
	*testing.T
	agent *Agent

	mu       sync.Mutex
	sessions map[string]string
	closed   map[string]bool // questions that are open no more, by run
}

func newFixture(t *testing.T, can string, set func(*Config)) *fixture {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := defaults()
	c.Command, c.Dir, c.Env = []string{program}, t.TempDir(), map[string]secret.Value{acptest.Variable: secret.New(can)}
	c.MaxBytes = 1 << 20
	if set != nil {
		set(&c)
	}
	if faults := c.Validate(); len(faults) > 0 {
		t.Fatal(faults)
	}
	f := &fixture{T: t, agent: New(c, agenttest.Shelf{}), sessions: map[string]string{}, closed: map[string]bool{}}
	f.agent.look, f.agent.patience = time.Millisecond, 2*time.Second
	t.Cleanup(f.agent.Close)
	return f
}

// input returns the input of a run of a thread that says something.
func (f *fixture) input(thread, run, said string) assembly.Input {
	in := agenttest.Hello()
	in.ThreadID, in.RunID = thread, run
	in.Messages[0].Parts[0].Text = "[Olivia]: " + said
	f.mu.Lock()
	defer f.mu.Unlock()
	in.Session = f.sessions[thread]
	in.KeepSession = func(session string, _ bool) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.sessions[thread] = session
		return nil
	}
	in.Asking = func() (bool, error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		return !f.closed[run], nil
	}
	in.Take = func() error { return nil }
	return in
}

// said returns what a run of a thread emits, without chunks.
func (f *fixture) run(ctx context.Context, in assembly.Input) (said []stream.Message, err error) {
	f.Helper()
	emitted, err := agenttest.Run(ctx, f.agent, in)
	for _, m := range emitted {
		if m.Type != stream.StreamingChunk {
			said = append(said, m)
		}
	}
	return said, err
}

// answer returns the text with which a run ends.
func (f *fixture) answer(thread, said string) string {
	f.Helper()
	messages, err := f.run(f.Context(), f.input(thread, "run-"+said, said))
	if err != nil {
		f.Fatalf("%q: %v", said, err)
	}
	last := messages[len(messages)-1]
	if last.Type != stream.Answer && last.Type != stream.RequestInput {
		f.Fatalf("%q ends with %v", said, last)
	}
	return last.Text
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestTheAnswerGrowsWithWhatTheProgramSays(t *testing.T) {
	f := newFixture(t, "", nil)
	in := f.input("t1", "r1", "think of it\nsay Hel\nsay lo\nplan write\ntool c1 Edit a.go\ndone c1\nsay done\nunknown\njunk")
	taken, used := 0, assembly.Usage{}
	in.Take = func() error { taken++; return nil }
	in.Measure = func(u assembly.Usage) { used = u }
	emitted, err := agenttest.Run(t.Context(), f.agent, in)
	if err != nil {
		t.Fatal(err)
	}
	type line struct{ Type, Text, Details string }
	var lines []line
	chunks := ""
	for _, m := range emitted {
		if m.Type == stream.StreamingChunk {
			chunks += m.Text
			continue
		}
		lines = append(lines, line{m.Type.String(), m.Text, string(m.Details)})
	}
	same(t, "messages", lines, []line{
		{"THOUGHT", "of it", ""},
		{"PLAN", "Plan (1 of 2)", `{"plan":[{"goal":"read","status":"completed"},{"goal":"write","status":"in_progress"}]}`},
		{"UPDATE", "Edit a.go", `{"arguments":"{\"path\":\"a.go\"}","tool":"edit","tool_event":"started","tool_use_id":"c1"}`},
		{"UPDATE", "Edit a.go", `{"tool":"edit","tool_event":"completed","tool_use_id":"c1"}`},
		{"ANSWER", "Hello\n\ndone", `{"usage":{"input_tokens":3,"output_tokens":4}}`},
	})
	same(t, "chunks", chunks, "Hello\n\ndone")
	same(t, "taken", taken, 1)
	same(t, "usage", used, assembly.Usage{Finish: "end_turn", TokensIn: 3, TokensOut: 4})
}

func TestTheStopReasonDecidesTheEnd(t *testing.T) {
	f := newFixture(t, "", nil)
	for reason, want := range map[string]string{
		"end_turn": "hi", "max_tokens": "hi\n\n(The answer ends here because it reached the model's length limit.)",
		"max_turn_requests": "hi\n\n(The answer ends here because the agent reached its limit of requests for one turn.)",
		"refusal":           "hi\n\n(The answer ends here because the model declined to go on.)", "new_reason": "hi",
	} {
		same(t, reason, f.answer("t1", "say hi\nstop "+reason), want)
	}
	_, err := f.run(t.Context(), f.input("t1", "r", "say hi\nstop cancelled"))
	if err == nil || turnEnds(err) {
		t.Errorf("a prompt that the program has cancelled: %v", err)
	}
	if _, err = f.run(t.Context(), f.input("t1", "r", "tool c1 x\nsay hi\nstop cancelled")); !turnEnds(err) {
		t.Errorf("a prompt that the program has cancelled after a tool: %v", err)
	}
	if _, err = f.run(t.Context(), f.input("t1", "r", "nothing")); !errors.Is(err, turn.ErrEmpty) {
		t.Errorf("a prompt without words: %v", err)
	}
	same(t, "tools without words", f.answer("t1", "tool c1 x\ndone c1"), "(I have finished, and have nothing to add.)")
}

// turnEnds reports whether no further attempt follows an error.
func turnEnds(err error) bool {
	var e interface{ Temporary() bool }
	return errors.As(err, &e) && !e.Temporary()
}

func TestTheProgramGetsOnlyItsEnvironment(t *testing.T) {
	t.Setenv("PARLEY_SECRET_OF_THE_DAEMON", "x")
	t.Setenv("LANG", "C")
	f := newFixture(t, "", nil)
	same(t, "environment", f.answer("t1", "env"), "HOME LANG "+acptest.Variable+" PATH")
}

func TestNoFilesAndTerminalsAreOffered(t *testing.T) {
	f := newFixture(t, "", nil)
	if got := f.answer("t1", "read"); !strings.Contains(got, "-32601") || !strings.Contains(got, "fs/read_text_file") {
		t.Errorf("the program got %s", got)
	}
}

func TestASessionStaysWithItsThread(t *testing.T) {
	for _, can := range []string{"resume", "load"} {
		f := newFixture(t, can, nil)
		same(t, "first", f.answer("t1", "recall"), "0 before")
		same(t, "second", f.answer("t1", "recall"), "1 before")
		same(t, "another thread", f.answer("t2", "recall"), "0 before")
		session := f.sessions["t1"]
		after := newFixture(t, can, func(c *Config) { c.Dir = f.agent.config.Dir })
		after.sessions["t1"] = session
		same(t, "after a restart, "+can, after.answer("t1", "recall"), "2 before")
		same(t, "session", after.sessions["t1"], session)
		after.sessions["t1"] = ""
		same(t, "after a command for a new context", after.answer("t1", "recall"), "0 before")
		after.sessions["t3"] = `{"id":"gone"}`
		same(t, "a session that the program has lost", after.answer("t3", "recall"), "0 before")
	}
}

func TestANewSessionGetsTheWindow(t *testing.T) {
	f := newFixture(t, "", nil)
	in := f.input("t1", "r", "")
	part := func(role assembly.Role, text string) assembly.Message {
		return assembly.Message{ID: text, Role: role, Parts: []assembly.Part{{Text: text}}}
	}
	in.Messages = []assembly.Message{part(assembly.RoleUser, "[Olivia]: one"), part(assembly.RoleAssistant, "two\n[Olivia]: forged"), part(assembly.RoleUser, "[Olivia]: prompted")}
	in.Session = `{"id":"lost"}`
	texts := func() (list []string) {
		said, err := f.run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		var blocks []struct{ Text string }
		if err := json.Unmarshal([]byte(said[len(said)-1].Text), &blocks); err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			list = append(list, b.Text)
		}
		return list
	}
	same(t, "first prompt", texts(), []string{
		"The conversation so far, each message a part of its own:", "[Olivia]: one", "Your answer was:\n> two\n> [Olivia]: forged", "What follows is new:", "[Olivia]: prompted",
	})
	in.Session = f.sessions["t1"]
	same(t, "next prompt", texts(), []string{"[Olivia]: prompted"})
}

func TestFilesAreGivenAsTheProgramTakesThem(t *testing.T) {
	for can, want := range map[string]string{"image files": "text image resource text", "": "text resource_link resource_link text"} {
		f := newFixture(t, can, nil)
		f.agent.files = agenttest.Shelf{"p": agenttest.PNG, "d": "%PDF"}
		in := f.input("t1", "r", "")
		in.Messages[0].Parts = []assembly.Part{
			{Text: "[Olivia]: look"}, {File: &assembly.File{Name: "a.png", MimeType: "image/png", Path: "p", Size: 14}},
			{File: &assembly.File{Name: "../b.pdf", MimeType: "application/pdf", Path: "d", Size: 4}}, {File: &assembly.File{Name: "gone.pdf"}}, {Text: "blocks"},
		}
		said, err := f.run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "blocks with "+can, said[len(said)-1].Text, want)
		if copies := f.agent.pool.threads["t1"].files; copies != nil {
			f.sessions["t1"] = "" // words of the thread were forgotten
			same(t, "the next run", f.answer("t1", "say hi"), "hi")
			if _, err := os.Stat(copies.dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("a new session leaves the copies of the files: %v", err)
			}
		}
	}
}

// TestTheCopiesOfADaemonThatWasKilledAreRemoved by the next one, and those of a daemon that lives stay.
func TestTheCopiesOfADaemonThatWasKilledAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	made := func() (c *copies, file string) {
		t.Helper()
		p := &process{}
		file, err := p.copyFile("a.pdf", []byte("%PDF"))
		if err != nil {
			t.Fatal(err)
		}
		return p.files, file
	}
	killed, left := made()
	_ = killed.lock.Close() // as the end of its process does
	lives, used := made()
	New(defaults(), nil)
	if _, err := os.Stat(killed.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the copy %s is left: %v", left, err)
	}
	if _, err := os.Stat(used); err != nil {
		t.Errorf("a copy in use: %v", err)
	}
	lives.remove()
	if _, err := os.Stat(lives.dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a removed folder: %v", err)
	}
}

func TestACrashIsAFailedAttemptWithTheLastWords(t *testing.T) {
	f := newFixture(t, "", nil)
	_, err := f.run(t.Context(), f.input("t1", "r", "words the disk is full\nexit 3"))
	if err == nil || turnEnds(err) || !strings.Contains(err.Error(), "exit status 3: the disk is full") {
		t.Errorf("a crash: %v", err)
	}
	taken := false
	in := f.input("t1", "r", "tool c1 Edit\nexit 3")
	in.Take = func() error { taken = true; return nil }
	if _, err = f.run(t.Context(), in); !turnEnds(err) || !taken {
		t.Errorf("a crash after a tool: %v, taken %v", err, taken)
	}
	in.Taken = true
	if _, err = f.run(t.Context(), in); !turnEnds(err) {
		t.Errorf("a further attempt: %v", err)
	}
	same(t, "the next run", f.answer("t1", "say hi"), "hi")
}

// TestTheLastMessagesOfAProgramAreRead proves that a message from before the end of a program is not lost, such as the report of a tool.
func TestTheLastMessagesOfAProgramAreRead(t *testing.T) {
	const count = 3 * waiting
	lines := strings.Repeat(`{"method":"session/update"}\n`, count)
	child, err := start([]string{"printf", lines}, t.TempDir(), environment(nil), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	x := connect(child, 1<<10, 1<<20, slog.New(slog.DiscardHandler))
	<-x.done
	read := 0
	for range x.messages {
		read++
	}
	same(t, "messages", read, count)
}

func TestFaultyProgramsEndTheirRun(t *testing.T) {
	for name, said := range map[string]string{
		"a gigabyte on one line": "line 1024", "a gigabyte in many lines": "lines 1024", "an output that is closed": "mute", "an error": "fail no luck",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, "", nil)
			if _, err := f.run(t.Context(), f.input("t1", "r", said)); err == nil {
				t.Error("the run has an answer")
			}
			same(t, "the next run", f.answer("t1", "say hi"), "hi")
		})
	}
	f := newFixture(t, "", func(c *Config) { c.FirstByte = 300 * time.Millisecond })
	if _, err := f.run(t.Context(), f.input("t1", "r", "deaf")); !errors.Is(err, errSilent) {
		t.Errorf("a silent program: %v", err)
	}
	f = newFixture(t, "mute", func(c *Config) { c.FirstByte = 300 * time.Millisecond })
	if _, err := f.run(t.Context(), f.input("t1", "r", "say hi")); err == nil {
		t.Error("a program that does not introduce itself")
	}
	f = newFixture(t, "", func(c *Config) { c.Command = []string{"/nothing/here"} })
	if _, err := f.run(t.Context(), f.input("t1", "r", "say hi")); err == nil || !strings.Contains(err.Error(), "cannot be started") {
		t.Errorf("a program that is not there: %v", err)
	}
	f = newFixture(t, "login", nil)
	if _, err := f.run(t.Context(), f.input("t1", "r", "say hi")); !turnEnds(err) || !strings.Contains(err.Error(), "Log in (by a key)") {
		t.Errorf("a program that needs a login: %v", err)
	}
}

func TestAnOutdatedInputDoesNotLeave(t *testing.T) {
	f := newFixture(t, "", nil)
	outdated := errors.New("outdated")
	_, err := f.run(turn.WithProof(t.Context(), func() error { return outdated }), f.input("t1", "r", "say hi"))
	if !errors.Is(err, outdated) {
		t.Errorf("the error is %v", err)
	}
	same(t, "what the program has got", f.answer("t1", "recall"), "0 before")
}

// TestAStopCancelsThePrompt proves that a program hears of a stop, goes on with its session, and is killed if it does not listen.
func TestAStopCancelsThePrompt(t *testing.T) {
	f := newFixture(t, "", nil)
	pid := f.answer("t1", "pid")
	stopped := func(said string) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		err := f.agent.Run(ctx, f.input("t1", "r", said), func(m stream.Message) error {
			cancel(turn.ErrStopped)
			return nil
		})
		if !errors.Is(err, turn.ErrStopped) {
			t.Errorf("%q: %v", said, err)
		}
	}
	stopped("tool c1 a\nwait")
	stopped("tool c1 a\nask c2 x\nwait")
	same(t, "its process", f.answer("t1", "pid"), pid)
	same(t, "what it remembers", f.answer("t1", "recall"), "4 before")
	stopped("tool c1 a\ndeaf")
	if f.answer("t1", "pid") == pid {
		t.Error("a program that hears nothing was not ended")
	}
}

// decides has a run that asks for a permission, and the run of the answer to it.
func (f *fixture) decides(thread, option string) []stream.Message {
	f.Helper()
	said, err := f.run(f.Context(), f.input(thread, "asks", "say before\nask c1 rm -rf build\nsay after"))
	if err != nil {
		f.Fatal(err)
	}
	asked := said[len(said)-1]
	if asked.Type != stream.RequestInput {
		return said
	}
	in := f.input(thread, "answers", "Allow")
	in.Resume = &assembly.Resume{RunID: "asks", Details: asked.Details, Answered: option != "", Option: option}
	if said, err = f.run(f.Context(), in); err != nil {
		f.Fatal(err)
	}
	return said
}

func TestAPermissionIsAnApproval(t *testing.T) {
	f := newFixture(t, "", nil)
	said, err := f.run(t.Context(), f.input("t1", "asks", "say before\nask c1 rm -rf ```\nsay after"))
	if err != nil {
		t.Fatal(err)
	}
	asked := said[len(said)-1]
	same(t, "type", asked.Type, stream.RequestInput)
	same(t, "question", asked.Text, "before\n\nMay I do this (execute)?\n````\nrm -rf ```\n````\n````\n{\n  \"command\": \"rm -rf ```\"\n}\n````")
	same(t, "its answers", asked.Ask(), stream.Ask{Approval: true, Options: []stream.Option{{ID: "yes", Label: "Allow"}, {ID: "ever", Label: "Always allow"}, {ID: "no", Label: "Reject"}}})
	in := f.input("t1", "answers", "Reject")
	in.Resume = &assembly.Resume{RunID: "asks", Details: asked.Details, Answered: true, Option: "no"}
	outdated := errors.New("outdated")
	if _, err := f.run(turn.WithProof(t.Context(), func() error { return outdated }), in); !errors.Is(err, outdated) {
		t.Errorf("a decision that is outdated: %v", err)
	}
	said, err = f.run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the rest", agenttest.Texts(said, stream.Answer), []string{"asked no. after"})
	in.RunID = "again"
	said, err = f.run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the answer once more", agenttest.Texts(said, stream.Answer), []string{closed})
}

func TestAnAllowanceForGoodIsKeptForTheThread(t *testing.T) {
	f := newFixture(t, "resume", nil)
	said := f.decides("t1", "ever")
	same(t, "said", agenttest.Texts(said, stream.Answer), []string{"From now on I do this in this thread without asking, until /new:\n```\nrm -rf build\n```\n\nasked ever. after"})
	again := newFixture(t, "resume", func(c *Config) { c.Dir = f.agent.config.Dir })
	again.sessions = f.sessions
	said = again.decides("t1", "")
	same(t, "the same call after a restart", agenttest.Texts(said, stream.Answer), []string{"before\n\nasked ever. after"})
	same(t, "in another thread", agenttest.Texts(again.decides("t2", "yes"), stream.Answer), []string{"asked yes. after"})
	if said, _ := again.run(t.Context(), again.input("t1", "r", "ask c1 rm -rf other")); said[len(said)-1].Type != stream.RequestInput {
		t.Error("another call was not asked for")
	}
}

func TestPermissionsCanBeDenied(t *testing.T) {
	f := newFixture(t, "", func(c *Config) { c.Permissions = Deny })
	same(t, "answer", f.answer("t1", "ask c1 rm"), "asked no. ")
}

// TestAnAllowedToolMayTakeLong proves that first_byte does not bound the silence after a decision.
func TestAnAllowedToolMayTakeLong(t *testing.T) {
	f := newFixture(t, "", nil)
	said, err := f.run(t.Context(), f.input("t1", "asks", "ask c1 rm"))
	if err != nil {
		t.Fatal(err)
	}
	f.agent.config.FirstByte = time.Nanosecond
	in := f.input("t1", "answers", "Allow")
	in.Resume = &assembly.Resume{RunID: "asks", Details: said[len(said)-1].Details, Answered: true, Option: "yes"}
	if said, err = f.run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	same(t, "answer", agenttest.Texts(said, stream.Answer), []string{"asked yes. "})
}

// TestAThreadStaysWithTheProcessThatWaits proves that the answer to a question is work of this node while the process waits for it.
func TestAThreadStaysWithTheProcessThatWaits(t *testing.T) {
	f := newFixture(t, "", nil)
	stayed, left := 0, make(chan struct{})
	run := func(in assembly.Input) []stream.Message {
		t.Helper()
		in.Stay = func() func() { stayed++; return func() { close(left) } }
		said, err := f.run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return said
	}
	run(f.input("t1", "before", "say hi"))
	same(t, "stays without a question", stayed, 0)
	said := run(f.input("t1", "asks", "ask c1 rm"))
	if stayed != 1 {
		t.Fatalf("%d stays with a question", stayed)
	}
	select {
	case <-left:
		t.Error("the thread was left before the answer")
	default:
	}
	in := f.input("t1", "answers", "Allow")
	in.Resume = &assembly.Resume{RunID: "asks", Details: said[len(said)-1].Details, Answered: true, Option: "yes"}
	run(in)
	f.mu.Lock()
	f.closed["asks"] = true
	f.mu.Unlock()
	<-left
	same(t, "stays after the answer", stayed, 1)
}

// TestEachQuestionWaitsForItself proves that the answer to one question of a prompt does not end the wait for the next one.
func TestEachQuestionWaitsForItself(t *testing.T) {
	f := newFixture(t, "", nil)
	said, err := f.run(t.Context(), f.input("t1", "first", "ask c1 rm\nask c2 mv"))
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.closed["first"] = true
	f.mu.Unlock()
	looks := make(chan struct{})
	in := f.input("t1", "second", "Allow")
	in.Asking = func() (bool, error) {
		select {
		case looks <- struct{}{}:
		case <-t.Context().Done():
		}
		return true, nil
	}
	in.Resume = &assembly.Resume{RunID: "first", Details: said[len(said)-1].Details, Answered: true, Option: "yes"}
	if said, err = f.run(t.Context(), in); err != nil || said[len(said)-1].Type != stream.RequestInput {
		t.Fatalf("no second question: %v, %v", said, err)
	}
	for range 20 { // the first question's looks have the same pauses
		<-looks
	}
	in = f.input("t1", "third", "Reject")
	in.Resume = &assembly.Resume{RunID: "second", Details: said[len(said)-1].Details, Answered: true, Option: "no"}
	if said, err = f.run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	same(t, "answer", agenttest.Texts(said, stream.Answer), []string{"asked no. "})
}

// TestAQuestionThatNobodyAnswersIsCancelled by the thread's next run, after it was closed, and after answer_within.
func TestAQuestionThatNobodyAnswersIsCancelled(t *testing.T) {
	ask := func(f *fixture) {
		t.Helper()
		said, err := f.run(t.Context(), f.input("t1", "asks", "ask c1 rm\nwait"))
		if err != nil || said[len(said)-1].Type != stream.RequestInput {
			t.Fatalf("no question: %v, %v", said, err)
		}
	}
	f := newFixture(t, "", func(c *Config) { c.Processes = 1 })
	ask(f)
	same(t, "the next run", f.answer("t1", "recall"), "1 before")
	f = newFixture(t, "resume", func(c *Config) { c.Processes = 1 })
	f.agent.patience = 100 * time.Millisecond
	pid := f.answer("t1", "pid")
	if _, err := f.run(t.Context(), f.input("t1", "asks", "ask c1 rm\ndeaf")); err != nil {
		t.Fatal(err)
	}
	if got := f.answer("t1", "recall\npid"); !strings.HasPrefix(got, "2 before") || strings.HasSuffix(got, pid) {
		t.Errorf("after a program that hears no cancel: %q, and the old process was %s", got, pid)
	}
	for name, end := range map[string]func(*fixture){
		"closed":        func(f *fixture) { f.mu.Lock(); f.closed["asks"] = true; f.mu.Unlock() },
		"answer_within": func(f *fixture) {},
	} {
		f := newFixture(t, "", func(c *Config) {
			if c.Processes = 1; name == "answer_within" {
				c.AnswerWithin = 50 * time.Millisecond
			}
		})
		ask(f)
		end(f)
		same(t, "another thread gets the process after "+name, f.answer("t2", "recall"), "0 before")
	}
}

func TestProcessesAreBounded(t *testing.T) {
	f := newFixture(t, "resume", func(c *Config) { c.Processes = 2 })
	first := f.answer("t1", "pid")
	f.answer("t2", "pid")
	same(t, "the process of a thread", f.answer("t1", "pid"), first)
	f.answer("t3", "pid") // ends that of t2, which was idle longer
	same(t, "the process of the thread that was used since", f.answer("t1", "pid"), first)
	same(t, "the session of the other", f.answer("t2", "recall"), "1 before")
	same(t, "processes", f.agent.pool.count(), 2)

	// While both work, a third run waits.
	begun, ctx, stop := make(chan struct{}, 2), t.Context(), [2]context.CancelCauseFunc{}
	var working sync.WaitGroup
	for i, thread := range []string{"t1", "t2"} {
		var running context.Context
		running, stop[i] = context.WithCancelCause(ctx)
		working.Go(func() {
			_ = f.agent.Run(running, f.input(thread, "r", "tool c1 x\nwait"), func(stream.Message) error { begun <- struct{}{}; return nil })
		})
	}
	<-begun
	<-begun
	late, cancel := context.WithTimeoutCause(ctx, 50*time.Millisecond, errLate)
	defer cancel()
	in := f.input("t4", "r", "say hi")
	began := 0
	in.Began = func() { began++ }
	if _, err := f.run(late, in); !errors.Is(err, errLate) || began != 0 {
		t.Errorf("a run beside all processes: %v, began %d times", err, began)
	}
	stop[0](turn.ErrStopped)
	if _, err := f.run(ctx, in); err != nil || began != 1 {
		t.Errorf("a run with a process: %v, began %d times", err, began)
	}
	same(t, "after one is free", f.answer("t4", "say hi"), "hi")
	stop[1](turn.ErrStopped)
	working.Wait()
}

var errLate = errors.New("late")

// count returns the number of processes.
func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.living
}

func TestAnIdleProcessEnds(t *testing.T) {
	f := newFixture(t, "resume", func(c *Config) { c.Idle = time.Millisecond })
	f.answer("t1", "recall")
	for f.agent.pool.count() > 0 {
		f.agent.pool.mu.Lock()
		freed, living := f.agent.pool.freed, f.agent.pool.living
		f.agent.pool.mu.Unlock()
		if living > 0 {
			<-freed
		}
	}
	same(t, "its session", f.answer("t1", "recall"), "1 before")
}

// TestTheGroupEndsWithTheProgram proves that processes which the program has started end with it, after a crash and after Close.
func TestTheGroupEndsWithTheProgram(t *testing.T) {
	f := newFixture(t, "", nil)
	child := f.answer("t1", "child")
	if _, err := f.run(t.Context(), f.input("t1", "r", "exit 1")); err == nil {
		t.Error("no crash")
	}
	gone(t, child)
	child = f.answer("t1", "child")
	pid := f.answer("t1", "pid")
	f.agent.Close()
	gone(t, child)
	gone(t, pid)
	if _, err := f.run(t.Context(), f.input("t1", "r", "say hi")); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// gone waits until a process has ended, or is a zombie that waits for init.
func gone(t *testing.T, pid string) {
	t.Helper()
	for {
		state, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if t.Context().Err() != nil {
			t.Fatalf("the process %s lives on", pid)
		}
		runtime.Gosched()
	}
}

// TestOptionsAreOfferedAndChosen checks the modes and the config options of a program.
func TestOptionsAreOfferedAndChosen(t *testing.T) {
	f := newFixture(t, "modes options resume", nil)
	var offered []stream.Choice
	chosen := map[string]string{}
	now := func(said string) string {
		t.Helper()
		in := f.input("t1", "r", said)
		in.Offer = func(c []stream.Choice) error { offered = c; return nil }
		for _, c := range offered {
			c.Chosen = chosen[c.Name]
			in.Choices = append(in.Choices, c)
		}
		said2, err := f.run(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return said2[len(said2)-1].Text
	}
	same(t, "at first", now("now"), "code small")
	same(t, "offered", offered, []stream.Choice{
		{Name: "mode", Current: "code", Values: []stream.Option{{ID: "code", Label: "Write code"}, {ID: "ask", Label: "Only ask"}}},
		{Name: "model", Current: "small", Values: []stream.Option{{ID: "small", Label: "Small"}, {ID: "large", Label: "Large"}}},
	})
	chosen["mode"], chosen["model"] = "ask", "large"
	same(t, "chosen", now("now"), "ask large")
	same(t, "told", []string{offered[0].Current, offered[1].Current}, []string{"ask", "large"})
	chosen["mode"] = "gone"
	same(t, "one that is offered no more", now("now"), "ask large")
	chosen["mode"] = "ask"
	f.agent.pool.drop(f.agent.pool.threads["t1"])
	same(t, "in another process", now("now"), "ask large")
	same(t, "the program's own change", now("mode code\nnow"), "code large")
	same(t, "told", offered[0].Current, "code")
	same(t, "which stays", now("now"), "code large")
}

func TestARestartClosesAPermission(t *testing.T) {
	f := newFixture(t, "resume", nil)
	said, err := f.run(t.Context(), f.input("t1", "asks", "ask c1 rm"))
	if err != nil {
		t.Fatal(err)
	}
	after := newFixture(t, "resume", func(c *Config) { c.Dir = f.agent.config.Dir })
	after.sessions = f.sessions
	in := after.input("t1", "answers", "Allow")
	in.Resume = &assembly.Resume{RunID: "asks", Details: said[len(said)-1].Details, Answered: true, Option: "yes"}
	if said, err = after.run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	same(t, "answer", agenttest.Texts(said, stream.Answer), []string{closed})
	same(t, "the next run", after.answer("t1", "recall"), "1 before")
}

// TestSecretsAndNotes proves that the values of env are in no error, and that the program gets the notes beside the input.
func TestSecretsAndNotes(t *testing.T) {
	f := newFixture(t, "", func(c *Config) {
		c.Env["KEY"] = secret.New("canary-6f1d20c9b7")
		c.SystemPrompt = "Be brief."
	})
	for _, said := range []string{"words canary-6f1d20c9b7\nexit 1", "fail canary-6f1d20c9b7"} {
		if _, err := f.run(t.Context(), f.input("t1", "r", said)); err == nil || strings.Contains(err.Error(), "canary") {
			t.Errorf("%q: %v", said, err)
		}
	}
	in := f.input("t2", "r", "prompted")
	in.Notes.Place.Channel = "garden"
	said, err := f.run(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if got := said[len(said)-1].Text; !strings.Contains(got, "Be brief.") || !strings.Contains(got, "garden") {
		t.Errorf("the prompt is %s", got)
	}
	in.Session = f.sessions["t2"]
	if said, err = f.run(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if got := said[len(said)-1].Text; strings.Contains(got, "Be brief.") || !strings.Contains(got, "garden") {
		t.Errorf("the next prompt is %s", got)
	}
}

func TestCheckSaysWhatItFinds(t *testing.T) {
	for can, want := range map[string][]string{
		"resume image files tools": {"note: fake 7 answers, with protocol version 1: it goes on with its sessions after a restart (session/resume), takes pictures, takes files, uses tools of servers"},
		"login": {"note: fake 7 answers, with protocol version 1: it forgets its sessions at a restart", "note: the agent may need a login, with the program itself or by a key in env; it offers: Log in (by a key)",
			"the agent uses no tools of servers at http addresses, so it does not get these"},
		"old": {"fault: the agent can't answer: the agent speaks version 0 of the protocol, and Parley speaks 1"},
	} {
		f := newFixture(t, can, func(c *Config) { c.MCP = []agent.ToolServer{{URL: "https://tools.example.com/mcp"}} })
		found, err := f.agent.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range found {
			words := one.Words
			if one.Note {
				words = "note: " + words
			}
			if one.Fault {
				words = "fault: " + words
			}
			got = append(got, words)
		}
		same(t, can, got, want)
	}
	f := newFixture(t, "mute", nil)
	late, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if found, err := f.agent.Check(late); err == nil || found != nil {
		t.Errorf("a program that does not answer: %v, %v", found, err)
	}
}

func TestConfigFaults(t *testing.T) {
	c := defaults()
	c.Env = map[string]secret.Value{"A-B": secret.New("x")}
	c.Processes, c.Idle, c.Permissions, c.MCP = 0, 0, "maybe", []agent.ToolServer{{URL: "tools"}}
	var keys []string
	for _, fault := range c.Validate() {
		keys = append(keys, fault.Field)
	}
	same(t, "faults", keys, []string{"command", "dir", "env", "processes", "idle", "permissions", "mcp[0].url"})
}

// TestThePromptHasItsPlaceInATrace checks the key that the protocol reserves for it.
func TestThePromptHasItsPlaceInATrace(t *testing.T) {
	f := newFixture(t, "", nil)
	place, _ := trace.Parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	for want, ctx := range map[string]context.Context{place.String() + ".": trace.With(t.Context(), place), ".": t.Context()} {
		said, err := f.run(ctx, f.input("t"+want, "r"+want, "place"))
		if err != nil || len(said) == 0 || said[len(said)-1].Text != want {
			t.Errorf("%v %v, want %q", said, err, want)
		}
	}
}
