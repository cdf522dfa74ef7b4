// Package slack has the scenarios that play Slack.
package slack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/cmd/parley-bench/internal/figure"
	"parley/cmd/parley-bench/internal/ledger"
	"parley/cmd/parley-bench/internal/rig"
	"parley/cmd/parley-bench/internal/trial"
	"parley/ingest/wake"
)

// Load measures the daemon beside the floor.
type Load struct {
	connections, events, threads, warmUp, rounds int
	fallback                                     int // events if no number is given, except for the workload stream
	only, workload, agent                        string
	rate, tokenRate                              float64
	tokens                                       int
	wait, calm, coalesce                         time.Duration
	bolt                                         string // the folder with Bolt, for Peers; empty without it
}

func (l *Load) Define(f *rig.FlagSet) {
	f.Number(&l.connections, "connections", 16, 1, "Slack's connections to the hook; each sends its next event when the last was acknowledged")
	l.fallback = 20_000
	f.Number(&l.events, "events", 0, 0, "number of measured messages; 0 for 20,000, for 5,000 of peers, and for 400 of -workload stream")
	f.Choice(&l.workload, "workload", "", []string{newThreads, oldThreads, talk, streams}, "instead of -threads: each message begins a thread; or is a reply in a thread that the daemon does not know; or is one of 15 in its thread; or begins a thread in which a model's answer grows")
	f.Choice(&l.agent, "agent", trial.Dialects()[0].Kind, append(kinds(), allKinds), "the kind of agent of -workload stream")
	f.Number(&l.tokens, "tokens", 500, 2, "tokens of an answer of -workload stream")
	f.Float(&l.tokenRate, "token-rate", 200, 1, "tokens per second of each answer of -workload stream")
	f.Number(&l.threads, "threads", 1000, 1, "number of threads with these messages; every fourth is a direct message")
	f.Number(&l.warmUp, "warmup", 500, 1, "number of messages before the measured ones; they open files and connections, and resolve the users' names")
	f.Number(&l.rounds, "rounds", 1, 1, "number of measurements of floor and daemon, in turn; the medians are compared")
	f.Duration(&l.coalesce, "coalesce", 0, 0, "the daemon's turns.coalesce, whose default is 500ms; above 0 only with -workload new or old, where each message has a thread of its own")
	f.Float(&l.rate, "rate", 0, 0, "messages per second, independent of the acknowledgements; 0 for no limit, and for 20 of -workload stream")
	f.Choice(&l.only, "only", "", []string{theFloor, theDaemon}, "measure only this program")
	f.Duration(&l.wait, "wait", 5*time.Minute, 0, "time limit for all replies of a measurement")
	f.Duration(&l.calm, "calm", time.Second, 0, "time without load before the measurement of idle memory")
}

// The workloads. A load without a name has direct messages, too.
const (
	newThreads = "new"
	oldThreads = "old"
	talk       = "talk"
	streams    = "stream"
)

// allKinds is the value of -agent for all kinds in turn.
const allKinds = "all"

// kinds returns the kinds of agents that have a server.
func kinds() (names []string) {
	for _, d := range trial.Dialects() {
		names = append(names, d.Kind)
	}
	return names
}

// talkTurns is the number of messages of a thread of the workload talk.
const talkTurns = 15

// conversations returns those of the warm-up and of the measured messages.
func (l *Load) conversations(api *slacktest.Server) (warm, measured []*ledger.Conversation) {
	n := 2 * l.events // enough for connections of different speed: each message has its own
	switch l.workload {
	case "":
		measured = ledger.NewConversations(l.threads)
		return measured, measured
	case talk:
		n = max(l.connections, l.events/talkTurns)
	}
	before := max(2*l.warmUp, l.connections) // each connection has one
	all := make([]*ledger.Conversation, before+n)
	for i := range all {
		all[i] = ledger.NewThread(i % ledger.DefaultChannels)
		if l.workload == oldThreads {
			all[i].Place.Root = api.Put(slacktest.Post{Channel: all[i].Place.Channel, User: ledger.User(i), Text: "said before the daemon came"}).TS
		}
	}
	return all[:before], all[before:]
}

func (l *Load) Check(*rig.Bench) error {
	if l.workload == "" && l.threads < l.connections {
		return errors.New("threads must not be fewer than connections: a thread's messages take one connection, in order")
	}
	if l.coalesce > 0 && (l.workload == "" || l.workload == talk) {
		return errors.New("coalesce needs -workload new, old or stream: messages of one thread would share an answer")
	}
	if l.workload == streams {
		l.events, l.rate, l.warmUp = cmp.Or(l.events, 400), cmp.Or(l.rate, 20), min(l.warmUp, 60)
	}
	l.events = cmp.Or(l.events, l.fallback)
	return nil
}

// The programs under test.
const (
	theFloor  = "floor"
	theDaemon = "parley"
	theBolt   = "bolt"
)

// programs returns the programs to measure in turn.
func (l *Load) programs() []string {
	switch {
	case l.only != "":
		return []string{l.only}
	case l.bolt != "":
		return []string{theFloor, theDaemon, theBolt}
	}
	return []string{theFloor, theDaemon}
}

func (l *Load) Run(ctx context.Context, b *rig.Bench) error {
	if b.Postgres != "" {
		b.Printf("postgres is the CPU of all PostgreSQL processes on this machine; the tool is Slack; each floor has as many connections as a daemon\n")
	}
	if l.workload != streams {
		return l.compare(ctx, b, "")
	}
	for _, kind := range kinds() {
		if l.agent != allKinds && l.agent != kind {
			continue
		}
		b.Printf("%s: answers of %d tokens, %.0f a second\n", kind, l.tokens, l.tokenRate)
		if err := l.compare(ctx, b, kind); err != nil {
			return err
		}
	}
	return nil
}

// compare measures the programs in turn; for -workload stream with a kind of agent.
func (l *Load) compare(ctx context.Context, b *rig.Bench, kind string) error {
	programs := l.programs()
	if kind != "" && kind != trial.Dialects()[0].Kind { // the app of Bolt has the client of one kind
		programs = slices.DeleteFunc(programs, func(program string) bool { return program == theBolt })
	}
	rates, cpus := map[string][]float64{}, map[string][]float64{}
	for round := range l.rounds {
		for _, program := range programs {
			figures, err := l.measure(ctx, b, program, kind, round)
			// Bolt promises nothing: the printed verdict is a result. A slow Bolt answers an event twice that Slack repeats.
			if err != nil && !(program == theBolt && errors.Is(err, rig.ErrViolated)) {
				return fmt.Errorf("measure %s: %w", program, err)
			}
			b.Printf("%-7s %v\n", program, figures)
			rates[program] = append(rates[program], figures.rate)
			cpus[program] = append(cpus[program], float64(figures.used))
		}
	}
	if l.only != "" || l.rate != 0 && kind == "" {
		return nil
	}
	for _, other := range programs[1:] {
		speed := ""
		if l.rate == 0 {
			speed = fmt.Sprintf("%.2f of the floor's messages/s, ", figure.Median(rates[other])/figure.Median(rates[theFloor]))
		}
		b.Printf("ratio   %s has %s%.2f times its CPU\n", other, speed, figure.Median(cpus[other])/figure.Median(cpus[theFloor]))
	}
	return nil
}

// setup returns the set-up with a program.
func (l *Load) setup(program, kind string) (s trial.Setup) {
	s.Floor, s.Coalesce = program == theFloor, l.coalesce
	if program == theBolt {
		s.Bolt = l.bolt
	}
	for _, d := range trial.Dialects() {
		if d.Kind == kind {
			answers := trial.Tokens(l.tokens, l.tokenRate)
			answers.Dialect = d
			s.Model, s.Relay = &answers, true
		}
	}
	return s
}

// warmUpRate is the rate of the messages before the measured ones: answers that stream would fill the machine at once.
func (l *Load) warmUpRate() float64 {
	if l.workload == streams {
		return l.rate
	}
	return 0
}

// measure starts a program, loads it, and checks its replies.
func (l *Load) measure(ctx context.Context, b *rig.Bench, program, kind string, round int) (f figures, err error) {
	setup, ends := l.setup(program, kind), newEnds()
	setup.Slack.OnChange = ends.note
	t, err := trial.New(ctx, b, fmt.Sprintf("%s%s%d", program, kind, round), setup)
	if err != nil {
		return f, err
	}
	begun := time.Now()
	if err := t.Nodes.Start(ctx); err != nil {
		return f, err
	}
	f.ready = time.Since(begun)
	if !wake.After(ctx, l.calm) {
		return f, ctx.Err()
	}
	f.idle = t.Nodes.Memory()
	warm, measured := l.conversations(t.API)
	if _, err := l.batch(ctx, t, ends, warm, l.warmUp, l.warmUpRate()); err != nil {
		return f, err
	}
	written, metrics := t.Nodes.Processes().Written, t.Nodes.Metrics(ctx)
	before, first, begun := readCPU(t.Nodes), t.Ledger.Count(), time.Now()
	last, err := l.batch(ctx, t, ends, measured, l.events, l.rate)
	if err != nil {
		return f, err
	}
	f.rate = float64(l.events) / last.Sub(begun).Seconds()
	after := readCPU(t.Nodes)
	f.written = (t.Nodes.Processes().Written - written) / int64(l.events)
	f.cpu, f.used = after.perMessage(before, l.events), after.programs-before.programs
	f.store = storePerMessage(t.Nodes.Metrics(ctx), metrics, l.events)
	once, again, _ := t.Ledger.Acks(first)
	f.ack = figure.Summarize(append(once, again...))
	f.reply = t.Ledger.Replies(t.API.Posts(), first)
	f.end = ends.since(t.Ledger, first)
	f.busy = t.Nodes.Memory()
	return f, t.Finish()
}

// batch sends n messages and waits until each has its reply. It returns the time of the
// last post.
func (l *Load) batch(ctx context.Context, t *trial.Trial, ends *ends, conversations []*ledger.Conversation, n int, rate float64) (last time.Time, err error) {
	first := t.Ledger.Count()
	trial.Traffic{Trial: t, Conversations: conversations, Workers: l.connections, Messages: n, Rate: rate, Bare: true}.Run(ctx, nil)
	if _, _, none := t.Ledger.Acks(first); none > 0 {
		return last, fmt.Errorf("%d messages were not acknowledged\n%s", none, t.Nodes.LogTail())
	}
	if err := t.AwaitPosts(ctx, t.Ledger.Count(), l.wait); err != nil {
		return last, err
	}
	if t.Model != nil {
		return time.Now(), ends.await(ctx, t, l.wait)
	}
	posts := t.API.Posts()
	return posts[len(posts)-1].At, nil
}

// figures are the results of one measurement.
type figures struct {
	ready      time.Duration // from the start of the slowest program to its readiness
	rate       float64       // durable messages per second: acknowledged and answered
	ack, reply figure.Times
	end        figure.Times  // from a model's last token to the end of the post that shows it
	cpu        string        // for each message
	used       time.Duration // by the program for all messages
	store      string        // the daemon's transactions, for each message
	written    int64         // bytes of files, for each message
	idle, busy figure.Memory
}

func (f figures) String() string {
	end := ""
	if f.end != (figure.Times{}) {
		end = fmt.Sprintf("last token to end %v   ", f.end)
	}
	return fmt.Sprintf("%7.0f messages/s   ack %v   reply %v   %sCPU %s%s   files %.1f kB   ready in %s, idle %s   loaded %v", f.rate, f.ack, f.reply, end, f.cpu, f.store, float64(f.written)/1e3, figure.Millis(f.ready), figure.Megabytes(f.idle.Now), f.busy)
}

// cpuTimes are the CPU times of all programs that share the machine.
type cpuTimes struct {
	programs time.Duration // the programs under test, together
	server   time.Duration // PostgreSQL; 0 if it is not in use or not on this machine
	tool     time.Duration // this process, which is Slack
}

func readCPU(n *rig.Nodes) cpuTimes {
	c := cpuTimes{programs: n.Processes().CPU, tool: figure.ReadProcess(os.Getpid()).CPU}
	if n.Database != nil {
		c.server = figure.PostgresCPU()
	}
	return c
}

// perMessage returns the CPU time that each of n messages took since an earlier moment.
func (c cpuTimes) perMessage(earlier cpuTimes, n int) string {
	each := func(now, then time.Duration) string { return figure.Millis((now - then) / time.Duration(n)) }
	server := ""
	if c.server > 0 {
		server = ", postgres " + each(c.server, earlier.server)
	}
	return each(c.programs, earlier.programs) + "/message" + server + ", tool " + each(c.tool, earlier.tool)
}

// storePerMessage words what each of n messages took of the daemon's store since earlier metrics; empty for
// a program without them.
func storePerMessage(now, earlier map[string]float64, n int) string {
	each := func(name string) float64 { return (now[name] - earlier[name]) / float64(n) }
	transactions := each("parley_commit_seconds_count")
	if transactions == 0 {
		return ""
	}
	kind, count := "pages", each(`parley_store_writes_total{unit="page"}`)
	if trips := each(`parley_store_writes_total{unit="trip"}`); trips > 0 {
		kind, count = "trips", trips
	}
	return fmt.Sprintf(", store %.2f calls in %.2f transactions, %.1f %s, %.2f ms",
		each(`parley_store_writes_total{unit="call"}`), transactions, count, kind, 1e3*each("parley_store_transaction_seconds_total"))
}
