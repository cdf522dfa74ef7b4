package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/adapters/slack/slacktest"
	"parley/ingest/wake"
)

// trial is one set-up under test: the fakes of the platform and of the model, the programs,
// and the ledger that compares the replies with the messages.
type trial struct {
	*bench
	setup  setup
	api    *slacktest.Server // nil on another platform
	model  *model            // nil if the echo agent answers
	ledger *ledger
	nodes  *nodes
	// posts returns the programs' posts on the platform, in the order in which they took effect.
	posts  func() []slacktest.Post
	faults []string // those that the scenario found by itself
	// transport carries Slack's events to the hook; nil for Socket Mode.
	transport *transport
}

// fastRetries are waits between Slack's attempts that are shorter than Slack's own.
// They go on for a minute.
func fastRetries() []time.Duration {
	return slices.Repeat([]time.Duration{20 * time.Millisecond}, 3000)
}

// newTrial starts the fakes and prepares the programs, but does not start them. The
// bench's close ends everything. name is the prefix of the programs' directories.
func (b *bench) newTrial(ctx context.Context, name string, s setup) (t *trial, err error) {
	t = &trial{bench: b, setup: s, ledger: newLedger()}
	t.ledger.unordered = s.floor
	if !s.slackRetries {
		s.slack.Repeat = fastRetries()
	}
	if t.api, err = b.startSlack(s.slack); err != nil {
		return nil, err
	}
	t.posts = t.api.Posts
	if s.model != nil {
		t.model = b.startModel(t.ledger, *s.model)
	}
	newChild := t.newDaemon
	if s.floor {
		newChild = t.newFloor
	}
	if t.nodes, err = b.newNodes(ctx, name, newChild); err != nil {
		return nil, err
	}
	if s.sockets == 0 {
		t.transport = newTransport(t.nodes.all)
		t.api.SetHook(slacktest.Hook{URL: "http://daemon" + hookPath, Secret: signingSecret, Client: &http.Client{Transport: t.transport}})
	}
	if s.floor && t.nodes.database != nil {
		if _, err := t.nodes.store.ExecContext(ctx, floorTables); err != nil {
			return nil, fmt.Errorf("make the floor's tables: %w", err)
		}
	}
	return t, nil
}

// startSlack starts the fake of Slack's API with all users in its directory.
func (b *bench) startSlack(options slacktest.Options) (*slacktest.Server, error) {
	api, err := slacktest.Start(options)
	if err != nil {
		return nil, err
	}
	b.onClose(api.Close)
	for n := range users {
		api.AddUser(slacktest.User{ID: user(n), Name: fmt.Sprintf("human%d", n), DisplayName: fmt.Sprintf("Human %d", n)})
	}
	return api, nil
}

// startTrial prepares a trial and starts its programs. It returns when they are ready.
func (b *bench) startTrial(ctx context.Context, name string, s setup) (*trial, error) {
	t, err := b.newTrial(ctx, name, s)
	if err != nil {
		return nil, err
	}
	return t, t.start(ctx)
}

// start starts the programs. It returns when they are ready and their sockets are open.
func (t *trial) start(ctx context.Context) error {
	if err := t.nodes.start(ctx); err != nil || t.setup.sockets == 0 {
		return err
	}
	if err := t.api.AwaitFresh(ctx, t.setup.sockets); err != nil {
		return fmt.Errorf("%w\n%s", err, t.nodes.logTail())
	}
	return nil
}

// awaitPosts waits until Slack has n posts. Its error contains the programs' logs.
func (t *trial) awaitPosts(ctx context.Context, n int, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if _, err := t.api.Await(ctx, n); err != nil {
		return fmt.Errorf("%w\n%s", err, t.nodes.logTail())
	}
	return nil
}

// settle waits until the daemons have no unfinished work and Slack has n posts, and describes
// what is left. gaps says whether gaps count as unfinished work.
func (t *trial) settle(ctx context.Context, n int, gaps bool, within time.Duration) (left string) {
	return t.nodes.settle(ctx, within, func(work *backlog) string {
		if !gaps {
			work.gaps = 0
		}
		return fewer(len(t.posts()), n, "posts")
	})
}

// fewer describes too small a number of things; empty for enough.
func fewer(there, due int, things string) string {
	if there >= due {
		return ""
	}
	return fmt.Sprintf("%d of %d %s", there, due, things)
}

// finish stops the programs, prints the ledger's verdict, and returns errViolated if
// the verdict has a violation or the scenario found faults, the trial's or more. Empty
// faults do not count.
func (t *trial) finish(faults ...string) error {
	if err := t.nodes.stop(); err != nil {
		return err
	}
	verdict := t.ledger.check(t.posts())
	t.printf("%v", verdict)
	if len(verdict.details) > 0 {
		faults = append(faults, "the ledger has violations")
	}
	return violations(append(faults, t.faults...))
}

// secondReplyWait is the time in which a second reply would come after all work is done.
const secondReplyWait = 3 * time.Second

// finishLate is finish after a wait for second replies. It also tells how late missed messages
// were read.
func (t *trial) finishLate(ctx context.Context, faults ...string) error {
	if !wake.After(ctx, secondReplyWait) {
		return ctx.Err()
	}
	if err := t.reportMissed(ctx); err != nil {
		return err
	}
	return t.finish(faults...)
}

// violations returns errViolated with the faults that are not empty; nil if there is none.
func violations(faults []string) error {
	faults = slices.DeleteFunc(faults, func(fault string) bool { return fault == "" })
	if len(faults) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", errViolated, strings.Join(faults, "; "))
}

// users is the number of people who write messages.
const users = 20

func user(n int) string { return fmt.Sprintf("U0HUMAN%02d", n%users) }

// The workspace under test. The floor has the same hook and secret.
const (
	workspace     = "bench"
	hookPath      = "/hooks/slack/" + workspace
	signingSecret = "bench-signing-secret"
)

// setup is the part of a trial that differs between scenarios.
type setup struct {
	slack slacktest.Options
	model *behaviour // nil for the echo agent
	floor bool       // the floor runs instead of the daemon
	// slackRetries says that Slack sends an event again after its own waits: at once, after
	// one minute and after five minutes.
	slackRetries bool
	// timeout is slack.timeout in the configuration; empty for the daemon's default.
	timeout string
	// streams says that Slack shows the model's answers while they grow, that a reaction
	// shows the run, and that a newer message interrupts the run.
	streams bool
	// wholeThread gives the model the default window of a thread, not a short one.
	wholeThread bool
	// runs is the number of concurrent runs of the model; 0 for 128.
	runs int
	// sockets is the daemon's number of Socket Mode connections; 0 for the hook.
	sockets int
}

// newDaemon prepares a daemon with its configuration. Each message is a turn of its own
// (coalesce: 0s), since the ledger compares each reply with one message.
func (t *trial) newDaemon(name string, d *database) (*child, error) {
	agents := ""
	if t.model != nil {
		agents = t.model.agent(name, fmt.Sprintf(", max_concurrent: %d", cmp.Or(t.setup.runs, 128)))
	}
	return t.bench.newDaemon(name, d, agents, t.setup.workspace(t.api.ClientURL(name)))
}

func (s setup) workspace(apiURL string) string {
	agent, window, mode := "echo", "", "queue"
	slack := []string{"bot_token: " + slacktest.Token, fmt.Sprintf("api_url: %q, post_rate: 0", apiURL)}
	if s.sockets > 0 {
		slack = append(slack, fmt.Sprintf("mode: socket, app_token: %s, sockets: %d", slacktest.AppToken, s.sockets))
	} else {
		slack = append(slack, "mode: http, signing_secret: "+signingSecret)
	}
	if s.model != nil {
		agent = "model"
	}
	if s.model != nil && !s.wholeThread {
		window = "context: {turns: 3, bytes: 20000, thread: 5}\n" // the answers are long, and only the last message counts
	}
	if s.streams {
		slack, mode = append(slack, "preview: stream, preview_every: 50ms, working: reaction"), "interrupt"
	} else if s.model != nil {
		slack = append(slack, "preview: off, working: off")
	}
	if s.timeout != "" {
		slack = append(slack, "timeout: "+s.timeout)
	}
	return fmt.Sprintf(`id: %s
platform: slack
agent: %s
slack: {%s}
turns: {mode: %s, coalesce: 0s, coalesce_max: 0s}
%s`, workspace, agent, strings.Join(slack, ", "), mode, window)
}
