package acp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/stream"
	"parley/ingest/trace"
)

const (
	// cancelTime bounds the wait for the end of a prompt that was cancelled. After it, the process ends.
	cancelTime = 5 * time.Second
	// lookTime is the time between two looks at a question that people may answer.
	lookTime = time.Second
)

// run is one run of the agent.
type run struct {
	*process
	input  assembly.Input
	kept   kept
	keep   func() error
	answer *remote.Answer
	prompt *prompt
}

// prompt is a prompt that the program works on, in one run or, after an answer of people, in several ones.
type prompt struct {
	id    string
	sent  <-chan error
	run   string           // that asked its people last
	asks  []permission     // requests for a permission, the one that people decide on first
	calls map[string]*call // of tools, by their ids
	told  bool             // it has reported a call of a tool
}

// Run prompts the program, or answers its request for a permission. An attempt after a call of a tool is refused: the tool may have had
// effects.
func (a *Agent) Run(ctx context.Context, input assembly.Input, emit func(stream.Message) error) error {
	if input.Taken {
		return a.client.Rejected("the agent's work was interrupted after it had used a tool, and is not repeated", "Sorry, I was interrupted in the middle of my work. What I had done may have had effects: please check before you ask again.")
	}
	p, err := a.pool.take(ctx, input.ThreadID)
	if err != nil {
		return err
	}
	if input.Began != nil {
		input.Began()
	}
	r := &run{process: p, input: input, kept: readKept(input.Session)}
	r.keep = keeps(input, &r.kept)
	r.answer = remote.NewAnswer(input.RunID, a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers).Measured(input.Measure)
	err = r.do(ctx)
	open, conn := p.open, p.conn
	a.pool.give(p, r.prompt != nil || r.session == "" || r.isEnded())
	if open != nil {
		leave := func() {}
		if input.Stay != nil {
			leave = input.Stay()
		}
		go func() {
			defer leave()
			a.attend(context.WithoutCancel(ctx), p, open, conn.done, input)
		}()
	}
	if errors.Is(err, errCancelled) {
		return context.Cause(ctx)
	}
	return err
}

// errCancelled is the error of a run whose prompt the program has ended, because the run's context has.
var errCancelled = errors.New("the prompt was cancelled")

// isEnded reports whether the process has ended.
func (p *process) isEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (r *run) do(ctx context.Context) error {
	answered, err := r.resume(ctx)
	if err != nil || answered {
		return err
	}
	if r.prompt == nil {
		if err := r.begin(ctx); err != nil {
			return err
		}
	}
	return r.follow(ctx)
}

// closed is the answer to people who have decided on a request whose process has ended.
const closed = "I no longer wait for this decision, so it has no effect, and my work has ended there. Please ask me again."

// resume goes on with the prompt that waits for the people. A prompt that they have not answered is cancelled. answered says that the run has its
// answer already.
func (r *run) resume(ctx context.Context) (answered bool, err error) {
	open, resume := r.open, r.input.Resume
	r.open = nil
	if resume != nil && resume.Answered && isOurs(resume.Details) && (open == nil || open.run != resume.RunID) {
		if open != nil && r.abandon(ctx, open) != nil {
			r.kill() // the next run gets a new process
			<-r.done
		}
		if err := r.answer.Text(closed); err != nil {
			return true, err
		}
		return true, r.answer.Finish("", nil)
	}
	if open == nil {
		return false, nil
	}
	if resume == nil || !resume.Answered || open.run != resume.RunID {
		if r.abandon(ctx, open) == nil {
			return false, nil
		}
		r.kill() // this run gets a new process
		<-r.done
		return false, r.process.begin(ctx)
	}
	if err := turn.Prove(ctx); err != nil { // the next attempt decides
		r.open = open
		return false, err
	}
	r.prompt = open
	return false, r.decide(resume.Option)
}

// begin sends the prompt.
func (r *run) begin(ctx context.Context) error {
	isNew, err := r.ensure(ctx, &r.kept, r.keep)
	if err != nil {
		return err
	}
	if err := r.choose(ctx); err != nil {
		return err
	}
	blocks, err := r.blocks(ctx, isNew)
	if err != nil {
		return err
	}
	for stale := true; stale; { // messages from before this prompt
		select {
		case m, ok := <-r.messages:
			if stale = ok; ok && m.Method != "" && m.ID != nil {
				err = r.refuse(m)
			}
		default:
			stale = false
		}
	}
	if err != nil {
		return r.fault("session/prompt", err)
	}
	p := &prompt{calls: map[string]*call{}}
	params := map[string]any{"sessionId": r.session, "prompt": blocks}
	if place := trace.From(ctx); !place.IsZero() {
		params["_meta"] = map[string]string{"traceparent": place.String()} // https://agentclientprotocol.com/protocol/extensibility
	}
	p.id, p.sent = r.request("session/prompt", params, func() error { return turn.Prove(ctx) })
	if p.id == "" {
		return <-p.sent
	}
	r.prompt = p
	return nil
}

// errAsks ends the reading of a prompt: people must decide.
var errAsks = errors.New("the agent asks its people")

// follow reads messages of the program until the prompt ends, or until people must decide on something.
func (r *run) follow(ctx context.Context) error {
	if len(r.prompt.asks) > 0 { // another request has come before the answer to the first
		return r.ask()
	}
	waiting, silent := context.WithCancelCause(ctx)
	defer silent(nil)
	bound := r.agent.config.FirstByte
	if len(r.prompt.calls) > 0 { // people have allowed a call, which may take long
		bound = r.agent.config.Timeout
	}
	first := time.AfterFunc(bound, func() { silent(errSilent) })
	defer first.Stop()
	raw, err := r.await(waiting, r.prompt.id, r.prompt.sent, func(m message) error {
		first.Stop()
		return r.take(m)
	})
	switch {
	case err == nil:
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), context.Canceled): // the daemon stops
		return context.Cause(ctx)
	case ctx.Err() != nil:
		if r.abandon(ctx, r.prompt) == nil {
			r.prompt = nil
			return errCancelled
		}
		return context.Cause(ctx)
	case errors.Is(err, errAsks):
		return r.ask()
	default:
		return r.failed(err)
	}
	told := r.prompt.told
	r.prompt = nil
	if err := r.offer(); err != nil { // the program may have changed its mode; the answer counts
		r.agent.log.Warn("the options of an agent's program are not stored", "err", err)
	}
	return r.finish(raw, told)
}

// failed returns the error of a prompt. After a call of a tool, no further attempt may follow.
func (r *run) failed(err error) error {
	err = r.fault("session/prompt", err)
	if fault, ok := errors.AsType[*remote.Error](err); ok && r.prompt.told {
		fault.Permanent = true
	}
	if _, refused := errors.AsType[*rpcError](err); refused {
		r.prompt = nil // the program goes on
	}
	return err
}

// take takes a message of the program during a prompt.
func (r *run) take(m message) error {
	switch {
	case m.Method == "session/update":
		return r.update(m.Params)
	case m.Method == "session/request_permission" && m.ID != nil:
		return r.permit(m)
	case m.Method != "" && m.ID != nil:
		return r.refuse(m)
	}
	return nil
}

// abandon cancels a prompt and waits for its end. It fails if the prompt does not end in time; then the process is of no more use.
func (p *process) abandon(ctx context.Context, open *prompt) error {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), p.agent.patience, errSilent)
	defer cancel()
	for _, asked := range open.asks {
		if err := p.reply(asked.id, cancelled); err != nil {
			return err
		}
	}
	open.asks = nil
	if err := p.notify("session/cancel", map[string]string{"sessionId": p.session}); err != nil {
		return err
	}
	_, err := p.await(ctx, open.id, open.sent, func(m message) error {
		switch {
		case m.Method == "session/request_permission" && m.ID != nil:
			return p.reply(m.ID, cancelled)
		case m.Method != "" && m.ID != nil:
			return p.refuse(m)
		}
		return nil
	})
	if _, refused := errors.AsType[*rpcError](err); refused {
		return nil // the prompt has ended
	}
	return err
}

// attend waits until people have decided on a prompt that waits, and cancels it if they will not.
func (a *Agent) attend(ctx context.Context, p *process, open *prompt, ended <-chan struct{}, input assembly.Input) {
	late := time.NewTimer(a.config.AnswerWithin)
	defer late.Stop()
	looks := time.NewTicker(a.look)
	defer looks.Stop()
	for {
		select {
		case <-ended:
			if a.pool.unopen(p, input.RunID) {
				a.pool.drop(p)
			}
			return
		case <-late.C:
		case <-looks.C:
			if input.Asking == nil {
				continue
			}
			if asks, err := input.Asking(); err != nil || asks {
				continue
			}
		}
		if a.pool.unopen(p, input.RunID) {
			p.open = nil
			a.pool.give(p, p.abandon(ctx, open) != nil)
		}
		return
	}
}

// finish ends the run with the reason for which the program has ended the prompt.
func (r *run) finish(raw json.RawMessage, told bool) error {
	var result struct {
		StopReason string `json:"stopReason"`
		Usage      *struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
		} `json:"usage"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return r.failedAfter(told, r.agent.client.Invalid("session/prompt: the answer cannot be read", err))
	}
	if told && result.StopReason == "end_turn" && r.answer.String() == "" {
		if err := r.answer.Text("(I have finished, and have nothing to add.)"); err != nil {
			return err
		}
	}
	var usage any
	if result.Usage != nil {
		usage = map[string]int64{"input_tokens": result.Usage.Input, "output_tokens": result.Usage.Output}
	}
	err := r.agent.client.Finish(r.answer, remote.Ending{Key: "stopReason", Finish: result.StopReason, Tools: &remote.Tools{}, Usage: usage})
	return r.failedAfter(told, err)
}

// failedAfter lets no further attempt follow after a call of a tool.
func (*run) failedAfter(told bool, err error) error {
	if fault, ok := errors.AsType[*remote.Error](err); ok && told {
		fault.Permanent = true
	}
	return err
}

// tells notes that the program has used a tool: the run must not be asked again.
func (r *run) tells() error {
	if r.prompt.told {
		return nil
	}
	r.prompt.told = true
	if r.input.Take == nil {
		return nil
	}
	if err := r.input.Take(); err != nil {
		return fmt.Errorf("note the use of a tool: %w", err)
	}
	return nil
}
