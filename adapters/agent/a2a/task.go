package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/assembly/turn"
	"parley/ingest/stream"
	"parley/ingest/wake"
)

const (
	// reconnects bounds the looks at a task that fail in a row. The pauses between them, and those between the looks at a task that works, double.
	reconnects   = 10
	firstPause   = time.Second
	longestPause = 15 * time.Second
	// An attempt that ends while the task works is followed by the next one after a part of the task's age.
	shortestRest, longestRest, restOfAge = 15 * time.Second, 10 * time.Minute, 8
	// maxParts bounds the artifacts of a task with their parts. It is more than the tokens of any model's answer.
	maxParts = 1 << 18
	// maxID bounds the id of a task or a context, in bytes.
	maxID = 1000
	// maxDepth bounds the depth of data whose lines are indented: each value may need two spaces for each level.
	maxDepth = 10
	// maxSaid bounds the words of an agent that has ended without an answer, in characters.
	maxSaid = 500
)

// run is a run's task with its results so far.
type run struct {
	agent   *Agent
	service *card // nil until it is read
	input   assembly.Input
	kept    session
	answer  *remote.Answer

	id    string // of the task; empty until the service has told it
	state string
	ended bool   // the task does nothing more by itself, or the service has answered without one
	says  []part // of the last status that had a message, or of the answer without a task
	told  string // the status message that the thread has got last
	room  int    // for such messages, in bytes

	list   []*made        // in the order of their begin
	place  map[string]int // of each in list, by its id
	held   int            // bytes of all
	pieces int            // number of them with their parts
	shown  int            // number of artifacts in the answer so far
	astray bool           // the answer so far is not the beginning of the artifacts
	gap    bool           // changes may be missing since the last look at the whole task
	moved  bool           // the connection has brought a change
	code   int            // of the last error of JSON-RPC
}

// made is an artifact.
type made struct {
	id, name string
	parts    []part
}

func newRun(a *Agent, input assembly.Input, emit func(stream.Message) error) *run {
	r := &run{place: map[string]int{}, agent: a, input: input, kept: readSession(input.Session), room: int(a.config.MaxBytes / 2)}
	r.answer = remote.NewAnswer(input.RequestID(), a.config.MaxBytes, emit).Read(a.config.Reading, a.client, input.Speakers)
	return r
}

// make asks for the task, or goes on with it, until it ends.
func (r *run) make(ctx context.Context) error {
	var err error
	if !r.input.Taken {
		err = r.begin(ctx)
	} else if r.kept.Task == "" || r.kept.Run != r.input.RunID {
		return r.agent.client.Rejected("the task of this run is not known any more: the thread's conversation with the agent was forgotten meanwhile", "")
	} else {
		r.id = r.kept.Task
		err = r.look(turn.WithProof(ctx, nil))
	}
	return r.follow(turn.WithProof(ctx, nil), err)
}

// follow looks at the task until it ends. No look carries an input.
func (r *run) follow(ctx context.Context, err error) error {
	for lost, quiet := 0, 0; ; {
		switch {
		case r.ended:
			return r.finish(ctx)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case r.id == "":
			return cmp.Or(err, error(r.agent.client.Invalid("the agent answered with neither a task nor a message", nil)))
		case err == nil:
			lost = 0
		case !mayPass(err) || lost == reconnects:
			return err
		default:
			lost++
		}
		if quiet++; r.moved {
			quiet = 0
		}
		pause := wake.Backoff(firstPause, longestPause, max(lost-1, quiet, 0))
		if fault, ok := errors.AsType[*remote.Error](err); ok {
			pause = max(pause, fault.RetryAfter)
		}
		if wake.After(ctx, pause) {
			err = r.look(ctx)
		}
	}
}

// mayPass reports whether a further look at the task may help after an error.
func mayPass(err error) bool {
	fault, ok := errors.AsType[*remote.Error](err)
	return ok && !fault.Permanent && !fault.Flood()
}

// pause returns the time until the next attempt at a task that works.
func (r *run) pause() time.Duration {
	age := time.Since(time.Unix(r.kept.Since, 0))
	return min(max(age/restOfAge, shortestRest), longestRest)
}

// begin sends the message. A service that refuses a stream or the address for push notifications has not begun, and is asked without.
func (r *run) begin(ctx context.Context) (err error) {
	if r.service, err = r.agent.service(ctx); err != nil {
		return err
	}
	for {
		method := "message/send"
		if r.service.streams.Load() {
			method = "message/stream"
		}
		images := r.images()
		params := r.message(ctx, images)
		pushes := params.Configuration.Push != nil
		err = r.exchange(ctx, method, r.input.RequestID(), params, images)
		switch {
		case err == nil || r.id != "":
			return err
		case pushes && r.code == codeNoPush:
			r.service.pushes.Store(false)
		case method == "message/stream" && (r.code == codeUnsupported || r.code == codeMethod):
			r.service.streams.Store(false)
			r.service.resumes.Store(false)
		default:
			return err
		}
	}
}

// look reads the whole task, and then its changes if the service streams them.
func (r *run) look(ctx context.Context) (err error) {
	r.moved = false
	if r.service == nil {
		if r.service, err = r.agent.service(ctx); err != nil {
			return err
		}
	}
	if err := r.exchange(ctx, "tasks/get", "", taskQuery{r.id}, nil); err != nil || r.ended || !r.service.resumes.Load() {
		return err
	}
	r.gap = true
	err = r.exchange(ctx, "tasks/resubscribe", "", taskQuery{r.id}, nil)
	switch {
	case r.code == codeUnsupported || r.code == codeMethod:
		r.service.resumes.Store(false)
	case err != nil && !mayPass(err) && r.code == 0:
		return err
	}
	return nil // the next look tells what the stream did not
}

// exchange makes a request and takes its results.
func (r *run) exchange(ctx context.Context, method, run string, params any, images *remote.Images) error {
	r.code = 0
	response, err := r.agent.call(ctx, r.service, method, run, params, images)
	if err != nil {
		return err
	}
	defer response.Close()
	if r.id != "" {
		response.Begun() // a task that has begun may be silent for longer
	}
	return r.agent.client.FollowOrTake(response, r.answer, "the end of the task", func(e remote.Event) error {
		err := r.take(e)
		if r.ended {
			r.answer.Done()
		}
		return err
	})
}

// take reads one answer or event of the service. It ignores events after the end of the task.
func (r *run) take(e remote.Event) error {
	if r.ended || remote.IsNote(e) {
		return nil
	}
	var answer rpcAnswer
	if err := json.Unmarshal(e.Data, &answer); err != nil {
		return r.agent.client.Invalid("the agent sent an invalid event", err)
	}
	if answer.Error != nil {
		r.code = cmp.Or(answer.Error.Code, codeRequest)
		return r.refused(strings.TrimSpace(answer.Error.Message + " " + string(answer.Error.Data)))
	}
	var h happening
	if err := json.Unmarshal(answer.Result, &h); err != nil {
		return r.agent.client.Invalid("the agent sent an invalid event", err)
	}
	return r.apply(&h)
}

// refused returns the error of an error of JSON-RPC.
func (r *run) refused(words string) error {
	fault := r.agent.client.Failure(fmt.Sprintf("the agent refuses (error %d): %s", r.code, words), 0)
	switch r.code {
	case codeParse, codeRequest, codeMethod, codeParams, codeNoTask, codeUnsupported, codeNoPush, codeType:
		fault.Permanent = true
	}
	return fault
}

// apply takes the effect of a result.
func (r *run) apply(h *happening) error {
	switch h.kind() {
	case "message":
		r.ended, r.state, r.says = true, stateCompleted, h.Parts
		return r.know("", h.ContextID)
	case "task":
		if err := r.know(h.ID, h.ContextID); err != nil {
			return err
		}
		if err := r.whole(h.Artifacts); err != nil {
			return err
		}
		r.gap = false
		return r.report(h.Status)
	case "status-update":
		if err := r.know(h.TaskID, h.ContextID); err != nil {
			return err
		}
		r.moved = true
		return r.report(h.Status)
	case "artifact-update":
		if err := r.know(h.TaskID, h.ContextID); err != nil || h.Artifact == nil {
			return err
		}
		r.moved = true
		return r.add(*h.Artifact, h.Append)
	}
	return nil // of a later version
}

// know takes the ids of the task and the context. They are durable before anything else of the task counts.
func (r *run) know(task, context string) error {
	if r.id != "" {
		if task != r.id && !(task == "" && r.ended) {
			return r.agent.client.Ended("the agent sent an event of another task than the run's", "")
		}
		return nil
	}
	if task == "" && !r.ended {
		return r.agent.client.Invalid("the agent named no task", nil)
	}
	if len(task) > maxID || len(context) > maxID {
		return r.agent.client.Ended(fmt.Sprintf("the agent sent an id of more than %d bytes", maxID), "")
	}
	before := r.kept
	r.id, r.kept = task, session{Context: cmp.Or(context, before.Context), Task: task, Run: r.input.RunID, Since: time.Now().Unix()}
	if task == "" {
		r.kept.Run, r.kept.Since = "", 0
	}
	if r.input.KeepSession == nil || task == "" && r.kept == before {
		return nil
	}
	return r.input.KeepSession(r.kept.String(), task != "")
}

// report takes a status. The words of a status while the task works are an UPDATE.
func (r *run) report(s *status) error {
	if s == nil {
		return nil
	}
	r.state = s.State
	if s.Message != nil && len(s.Message.Parts) > 0 {
		r.says = s.Message.Parts
	}
	if r.ended = isEnd(s.State); r.ended || s.Message == nil {
		return nil
	}
	text := texts(s.Message.Parts)
	mark := s.Message.ID + "\n" + text
	if text == "" || mark == r.told || len(text) > r.room {
		return nil
	}
	r.told, r.room = mark, r.room-len(text)
	return r.answer.Say(stream.Message{Type: stream.Update, Text: text})
}

// size returns the bytes of an artifact or a piece of one.
func size(m *made) int {
	n := len(m.id) + len(m.name)
	for _, p := range m.parts {
		n += len(p.Kind) + len(p.Text) + len(p.Data)
		if p.File != nil {
			n += len(p.File.Bytes) + len(p.File.Name) + len(p.File.URI) + len(p.File.MimeType)
		}
	}
	return n
}

// hold counts an artifact or a piece of one, and no longer counts the artifact that it replaces; nil for none.
func (r *run) hold(now, before *made) error {
	r.held, r.pieces = r.held+size(now), r.pieces+1+len(now.parts)
	if before != nil {
		r.held, r.pieces = r.held-size(before), r.pieces-1-len(before.parts)
	}
	if r.pieces > maxParts {
		return r.agent.client.Ended(fmt.Sprintf("the task has more than %d parts", maxParts), turn.LongAnswer)
	}
	return r.answer.Bound(r.held / 2) // files in base64 may be left out of the answer
}

// add takes an artifact, or a piece of one. The text of the last artifact goes on in the answer; any other change makes the
// answer begin again when the task has ended.
func (r *run) add(piece artifact, appends bool) error {
	i, known := r.place[piece.ID]
	now, before := &made{piece.ID, piece.Name, piece.Parts}, (*made)(nil)
	switch {
	case !known:
		r.place[piece.ID] = len(r.list)
		r.list = append(r.list, now)
	case appends:
		r.list[i].parts = append(r.list[i].parts, piece.Parts...)
		r.list[i].name = cmp.Or(r.list[i].name, piece.Name)
		r.astray = r.astray || i < len(r.list)-1
	default:
		before, r.list[i], r.astray = r.list[i], now, true
		now.name = cmp.Or(now.name, before.name)
	}
	if err := r.hold(now, before); err != nil {
		return err
	}
	if r.astray {
		return nil
	}
	if !known {
		if err := r.open(); err != nil {
			return err
		}
	}
	return r.write(piece.Parts)
}

// open begins the text of a further artifact.
func (r *run) open() error {
	r.shown++
	if r.shown == 1 {
		return nil
	}
	return r.answer.Part()
}

// whole takes all artifacts of a task. If they go on from those that are known, so does the answer.
func (r *run) whole(list []artifact) error {
	if len(list) == 0 {
		return nil // some services keep none
	}
	known := r.list
	r.list, r.held, r.pieces, r.astray = nil, 0, 0, r.astray || len(list) < len(known)
	clear(r.place)
	for i, a := range list {
		if _, twice := r.place[a.ID]; twice || i >= len(known) {
			if err := r.add(a, false); err != nil {
				return err
			}
			continue
		}
		more, ok := rest(known[i].parts, a.Parts)
		ok = ok && known[i].id == a.ID && (len(more) == 0 || i == len(known)-1)
		now := &made{a.ID, cmp.Or(a.Name, known[i].name), a.Parts}
		r.place[a.ID] = len(r.list)
		r.list = append(r.list, now)
		if err := r.hold(now, nil); err != nil {
			return err
		}
		if r.astray = r.astray || !ok; !r.astray {
			if err := r.write(more); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest returns the parts that follow the known ones. The pieces of a text may have become one part meanwhile.
func rest(known, now []part) (more []part, ok bool) {
	before, after := plain(known), plain(now)
	if len(known) <= len(now) && equal(known, now[:len(known)]) {
		return now[len(known):], true
	}
	if before == nil || after == nil || !strings.HasPrefix(*after, *before) {
		return nil, false
	}
	if text := (*after)[len(*before):]; text != "" {
		more = []part{{Kind: "text", Text: text}}
	}
	return more, true
}

// plain returns the text of parts; nil if there are others than texts.
func plain(parts []part) *string {
	var b strings.Builder
	for _, p := range parts {
		if p.File != nil || len(p.Data) > 0 {
			return nil
		}
		b.WriteString(p.Text)
	}
	text := b.String()
	return &text
}

func equal(a, b []part) bool {
	for i := range a {
		x, y := a[i], b[i]
		if x.Text != y.Text || !bytes.Equal(x.Data, y.Data) || (x.File == nil) != (y.File == nil) || x.File != nil && *x.File != *y.File {
			return false
		}
	}
	return true
}

// write writes parts into the answer. Files are none of its text.
func (r *run) write(parts []part) error {
	for _, p := range parts {
		if err := r.part(p); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) part(p part) error {
	switch {
	case p.File != nil && p.File.Bytes == "":
		return r.alone(func() error { return r.answer.Link(cmp.Or(p.File.Name, "file"), p.File.URI) })
	case p.File != nil:
		return nil
	case len(p.Data) > 0 && string(p.Data) != "null":
		indent := "  "
		if depth(p.Data) > maxDepth {
			indent = ""
		}
		var b bytes.Buffer
		if json.Indent(&b, p.Data, "", indent) != nil {
			return nil // the decoder has checked it
		}
		return r.alone(func() error { return r.answer.Text("```json\n" + b.String() + "\n```") })
	}
	return r.answer.Text(p.Text)
}

// depth returns the depth of the lists and objects in valid JSON.
func depth(data []byte) (deepest int) {
	d := json.NewDecoder(bytes.NewReader(data))
	for now := 0; ; {
		switch token, err := d.Token(); {
		case err != nil:
			return deepest
		case token == json.Delim('[') || token == json.Delim('{'):
			now++
			deepest = max(deepest, now)
		case token == json.Delim(']') || token == json.Delim('}'):
			now--
		}
	}
}

// alone writes a paragraph of its own.
func (r *run) alone(write func() error) error {
	if err := r.answer.Part(); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return r.answer.Part()
}

// finish emits the end of the run.
func (r *run) finish(ctx context.Context) error {
	if r.gap {
		r.ended, r.gap = false, false
		err := r.exchange(ctx, "tasks/get", "", taskQuery{r.id}, nil)
		fault, ok := errors.AsType[*remote.Error](err)
		switch {
		case r.ended:
		case err == nil || mayPass(err) || ctx.Err() != nil:
			r.gap = err != nil
			return r.follow(ctx, err)
		case r.code == 0 && (!ok || fault.Status == 0):
			return err
		}
		r.ended = true // a service that does not keep its tasks
	}
	words := cmp.Or(texts(r.says), "it gave no reason")
	sentence := func(begin string) string { return begin + ": " + remote.Plain(words, maxSaid) }
	switch r.state {
	case stateRejected:
		return r.agent.client.Ended("the agent rejected the task: "+words, sentence("The agent declined this"))
	case stateFailed:
		return r.agent.client.Ended("the task failed: "+words, sentence("The agent could not do this"))
	case stateCanceled:
		return r.agent.client.Ended("the agent canceled the task: "+words, sentence("The agent canceled this"))
	case stateAuth:
		return r.agent.client.Ended("the agent needs another authorization for this task, which Parley cannot give: "+words, sentence("The agent needs an authorization that I can't give it"))
	}
	if r.astray {
		if err := r.answer.Replace(); err != nil {
			return err
		}
		r.shown = 0
		for _, m := range r.list {
			if err := r.open(); err != nil {
				return err
			}
			if err := r.write(m.parts); err != nil {
				return err
			}
		}
	}
	if r.files(); r.state == stateInput {
		return r.answer.Ask(cmp.Or(texts(r.says), "The agent needs an answer to go on."), nil)
	}
	if !r.hasSaid() {
		r.list = []*made{{parts: r.says}}
		if err := r.write(r.says); err != nil {
			return err
		}
		if r.files(); !r.hasSaid() {
			return r.agent.client.Empty("the task is completed, and has neither an artifact nor a message")
		}
	}
	return r.answer.Finish("", nil)
}

// hasSaid reports whether an artifact has anything.
func (r *run) hasSaid() bool {
	for _, m := range r.list {
		for _, p := range m.parts {
			if strings.TrimSpace(p.Text) != "" || len(p.Data) > 0 || p.File != nil {
				return true
			}
		}
	}
	return false
}

// files gives the answer the files of the artifacts.
func (r *run) files() {
	for _, m := range r.list {
		for _, p := range m.parts {
			if p.File == nil || p.File.Bytes == "" {
				continue
			}
			data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.NewReplacer("-", "+", "_", "/", "\n", "", "\r", "").Replace(p.File.Bytes), "="))
			if err == nil && len(data) > 0 {
				r.answer.File(stream.File{Name: cmp.Or(remote.Plain(p.File.Name, maxName), remote.Plain(m.name, maxName), "file"), MimeType: remote.Plain(cmp.Or(p.File.MimeType, "application/octet-stream"), maxName), Data: data})
			}
		}
	}
}

// maxName bounds the name of a file, in characters.
const maxName = 120
