package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize/english"

	"parley/adapters"
	"parley/adapters/web/threads"
	"parley/assembly/turn"
	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/listing"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/storage"
)

var whyRoutes = []Route{
	{Pattern: "GET why", Role: config.RoleViewer, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("ref"); err != nil {
			return nil, err
		}
		return s.Why(c.Context(), c.By, c.Query("ref"))
	}},
}

// Why is the life of one message, or the reasons for which the store does not have it.
type Why struct {
	Ref   string `json:"ref"`
	Found bool   `json:"found"`
	// Message is in the form of the API; nil if it is not stored. The content is empty for a viewer, unless it is
	// of a room.
	Message *threads.Message `json:"message,omitempty"`
	// Workspace and Thread are the place of the message; empty if it is unknown.
	Workspace string `json:"workspace,omitempty"`
	Thread    string `json:"thread,omitempty"`
	Channel   string `json:"channel,omitempty"`
	// ChannelName is empty if it is not known or if the caller may not read the message. ThreadID is the thread's UUID.
	ChannelName string `json:"channel_name,omitempty"`
	ThreadID    string `json:"thread_id,omitempty"`
	// RunID is the run that answers the message, or whose answer it is; empty for none.
	RunID    string `json:"run_id,omitempty"`
	Answered bool   `json:"answered"`
	Quiet    bool   `json:"quiet"`   // the agent chose to say nothing
	Trigger  string `json:"trigger"` // run, passive, none
	Reason   string `json:"reason"`  // empty for one that is not decided
	// Words tell the reason, or the run of a message of ours, which has none; and Change the key that changes the outcome; empty if none does.
	Words  string `json:"words,omitempty"`
	Change string `json:"change,omitempty"`
	// Run is the state of a run that has not answered the message: running, failed, canceled, dropped or interrupted; empty for none.
	// RunWords name its agent and its error, and Repair the command that asks again; empty for none.
	Run      string `json:"run,omitempty"`
	RunWords string `json:"run_words,omitempty"`
	Repair   string `json:"repair,omitempty"`
	// Because are the settings that decided, with their present values.
	Because []config.Setting `json:"because"`
	// Changed tells that a file of Because was changed after the decision; empty if none was.
	Changed string     `json:"changed,omitempty"`
	Steps   []LifeStep `json:"steps"` // in the order of their times
	// Possible are the reasons for which a message is not in the store.
	Possible []Possible `json:"possible"`
	Traced              // the trace of its run, or else its own
}

// LifeStep is one step in the life of a message.
type LifeStep struct {
	At time.Time `json:"at"`
	// What names the step: received, durable, duplicate, recorded, decided, edited, deleted, turn, files, attempt, workstream,
	// answered, quiet, failed, delivery, sent or dead.
	What   string `json:"what"`
	Detail string `json:"detail"`
	// Link is the address at which people see what was sent; empty for none.
	Link string `json:"link,omitempty"`
}

// Possible is a reason for which a message may be missing.
type Possible struct {
	Reason string `json:"reason"`
	Tested bool   `json:"tested"` // false if the service cannot know
	Holds  bool   `json:"holds"`  // false if it was not tested
}

// maxRef bounds a reference to a message, in bytes.
const maxRef = 1000

var isUUID = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Why returns the life of the message that a reference names: a link of a platform, an external id, the UUID of a message,
// or the id of a run.
func (s *Service) Why(ctx context.Context, by Caller, ref string) (Why, error) {
	ref = strings.TrimSpace(ref)
	if ref == "" || len(ref) > maxRef {
		return Why{}, Fail(http.StatusBadRequest, "ref", "ref must be the link of a message, its id, or the id of a run")
	}
	w := Why{Ref: ref, Because: []config.Setting{}, Steps: []LifeStep{}, Possible: []Possible{}, Trigger: string(messages.TriggerNone)}
	found, life, err := s.find(ctx, ref)
	if errors.Is(err, storage.ErrNotFound) {
		switch t, err := s.Journal.Listing.ThreadOf(ctx, ref); {
		case err == nil:
			w.Possible = []Possible{{"it names a thread, and not a message: parley threads show " + string(t.Key) + " lists its messages", true, true}}
			return w, nil
		case !errors.Is(err, storage.ErrNotFound):
			return w, err
		}
		w.Possible, err = s.possible(ctx, found)
		return w, err
	}
	if err != nil {
		return w, err
	}
	w.Found = true
	w.tell(ctx, life, s.link)
	w.Traced = s.traceIn(ctx, life)
	reads := by.Reads(!life.Private)
	w.ChannelName = s.channelName(ctx, by, life.Workspace, life.Channel, !life.Private)
	if err := s.giveFiles(ctx, &w, life, reads); err != nil {
		return w, err
	}
	w.judge(life, s.Config())
	if w.Reason == event.ReasonPaused {
		if err := s.tellPause(ctx, &w, life); err != nil {
			return w, err
		}
	}
	if w.Message != nil && !reads {
		w.Message.Content, w.Message.Metadata, w.Message.Attachments = "", []byte(`{}`), nil
	}
	return w, nil
}

// giveFiles adds a step with the files that the agent got with the input of the run. Texts are among the words of the input.
func (s *Service) giveFiles(ctx context.Context, w *Why, life *listing.Life, reads bool) error {
	if life.Run == nil || !reads {
		return nil
	}
	given, err := turn.GivenTo(ctx, s.Journal.Runs, s.Journal.Outbox, life.ThreadID, life.Run.ID, s.windowOf, config.Mentions, s.agentIDs()...)
	if errors.Is(err, storage.ErrNotFound) { // its messages have another run since
		given, err = s.keptInput(ctx, life.ThreadID, life.Run.ID)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	kept := []byte(given.Kept)
	if given.Kept == "" {
		if kept, err = json.Marshal(given.Messages); err != nil {
			return err
		}
	}
	var names []string
	for _, m := range inputFiles(kept) {
		names = append(names, m.Filename+" ("+m.MimeType+")")
	}
	if names != nil {
		w.step(life.Run.BegunAt, "files", "with the input: %s", strings.Join(names, ", "))
		slices.SortStableFunc(w.Steps, func(a, b LifeStep) int { return a.At.Compare(b.At) })
	}
	return nil
}

// inputFile is a file of an input; see assembly.Message.
type inputFile struct{ Type, MimeType, Filename string }

// inputFiles returns the files of an input, a JSON list of messages.
func inputFiles(input []byte) (files []inputFile) {
	var list []struct{ Content json.RawMessage }
	_ = json.Unmarshal(input, &list) // an input that is not kept has none
	for _, m := range list {
		var parts []inputFile
		_ = json.Unmarshal(m.Content, &parts) // a message of one text has a string
		for _, p := range parts {
			if p.Type == "binary" {
				files = append(files, p)
			}
		}
	}
	return files
}

// sought is a message that a reference names.
type sought struct {
	adapters.MessageRef
	workspaces []string // those that may have it
}

// find looks for the message. The error is ErrNotFound if the store does not have it.
func (s *Service) find(ctx context.Context, ref string) (sought, *listing.Life, error) {
	target := s.read(ref)
	if lower := strings.ToLower(ref); isUUID.MatchString(lower) {
		if life, err := s.Journal.Listing.LifeByID(ctx, lower); !errors.Is(err, storage.ErrNotFound) {
			return target, life, err
		}
	}
	life, err := s.Journal.Listing.LifeOf(ctx, target.ID, target.workspaces)
	if errors.Is(err, storage.ErrNotFound) {
		life, err = s.Journal.Listing.LifeByID(ctx, ref) // a run's id that a client chose
	}
	return target, life, err
}

// read reads a reference. A text that no platform knows may be an external id in each workspace.
func (s *Service) read(ref string) (target sought) {
	target.ID = ref
	for _, w := range s.Config().Workspaces {
		platform, _ := config.Platform(w.Platform)
		if platform.MessageOf == nil {
			continue
		}
		if m, ok := platform.MessageOf(ref); ok {
			target.MessageRef, target.workspaces = m, append(target.workspaces, w.ID)
		}
	}
	if target.workspaces == nil && !strings.Contains(ref, "://") {
		for _, w := range s.Config().Workspaces {
			target.workspaces = append(target.workspaces, w.ID)
		}
	}
	return target
}

// step adds a step, unless its time is unknown.
func (w *Why) step(at time.Time, what, format string, args ...any) {
	if !at.IsZero() {
		w.Steps = append(w.Steps, LifeStep{At: at, What: what, Detail: fmt.Sprintf(format, args...)})
	}
}

// tell adds the steps of a life.
func (w *Why) tell(ctx context.Context, l *listing.Life, link func(context.Context, listing.Delivery) string) {
	w.Workspace, w.Thread, w.ThreadID, w.Channel = l.Workspace, string(l.Thread), l.ThreadID, l.Channel
	for i, p := range l.Payloads {
		w.payload(i, p)
	}
	if m := l.Message; m != nil {
		view := threads.View(m)
		w.Message = &view
		w.Trigger, w.Reason = string(m.Trigger), m.Reason
		if m.Seq > 0 {
			w.step(m.CreatedAt, "recorded", "message %d of thread %s%s", m.Seq, l.Thread, postedBy(m.Metadata))
		}
		if m.Author != messages.ByAgent {
			w.step(m.CreatedAt, "decided", "%s", decided(w.Trigger, w.Reason))
		}
		w.step(m.EditedAt, "edited", "")
		w.step(m.DeletedAt, "deleted", "its words were removed")
	}
	if l.Run != nil {
		w.run(l)
	}
	for _, d := range l.Deliveries {
		w.delivery(d, link(ctx, d))
	}
	slices.SortStableFunc(w.Steps, func(a, b LifeStep) int { return a.At.Compare(b.At) })
}

// postedBy returns words about the program that has posted a message of ours; empty for another message.
func postedBy(raw []byte) string {
	metadata, _ := event.ReadMetadata(raw) // it is ours
	for _, extra := range metadata.Extra {
		var by string
		if extra.Key == event.KeyPostedBy && metadata.SenderType == event.Bot && strings.HasPrefix(metadata.SenderID, "agent:") && json.Unmarshal(extra.Value, &by) == nil {
			return ", posted by " + by
		}
	}
	return ""
}

// decided returns the words of a decision.
func decided(trigger, reason string) string {
	if reason == "" {
		return trigger
	}
	return trigger + ": " + reason
}

// payload adds the steps of an envelope. The first one of a message that is not stored also shows the decision.
func (w *Why) payload(i int, p listing.Payload) {
	what := "envelope"
	if p.Kind != event.KindMessage {
		what = string(p.Kind)
	}
	w.step(cmp.Or(p.ReceivedAt, p.AcceptedAt), "received", "%s %d over %s", what, p.ID, p.Transport)
	switch {
	case p.Disposition == event.Duplicate, i > 0 && p.Kind == event.KindMessage:
		w.step(p.AcceptedAt, "duplicate", "envelope %d reports the same message", p.ID)
	default:
		w.step(p.AcceptedAt, "durable", "envelope %d", p.ID)
	}
	switch {
	case p.State == "dead" || p.Disposition == event.Dead:
		w.step(p.AcceptedAt, "dead", "dead letter %d: %s", p.ID, p.Error)
	case p.State == "pending" && p.Attempts > 0:
		w.step(p.AcceptedAt, "decided", "not yet: %s failed, the last one with: %s", english.Plural(int(p.Attempts), "attempt", ""), p.Error)
	case p.Disposition == event.Ignored && w.Reason == "":
		w.Reason = p.Reason
		w.step(p.AcceptedAt, "decided", "%s", decided("ignored", p.Reason))
	}
}

// run adds the steps of the run that answers the message.
func (w *Why) run(l *listing.Life) {
	r := l.Run
	w.RunID = r.ID
	w.Answered, w.Quiet = r.State == "done", r.State == listing.Quiet
	asked := ", " + english.Plural(int(l.Turn), "message", "")
	if l.Again {
		asked = ""
	}
	w.step(r.BegunAt, "turn", "run %s of agent %s%s", r.ID, r.Agent, asked)
	said := "answered"
	if w.Quiet {
		said = listing.Quiet
	}
	for _, a := range r.Attempts {
		said := said
		if a.Finish == runs.AnswersLater {
			said = a.Finish
		}
		if a.Lost() {
			w.step(r.BegunAt, "attempt", "%d is lost: %s", a.N, a.Error)
			continue
		}
		w.step(a.BegunAt, "attempt", "%d on node %s, %d ms: %s", a.N, a.Node, a.EndedAt.Sub(a.BegunAt).Milliseconds(), cmp.Or(a.Error, said))
	}
	for _, child := range r.Workstreams {
		w.step(child.LaunchedAt, "workstream", "%v", child)
	}
	switch {
	case r.EndedAt.IsZero():
	case w.Answered:
		w.step(r.EndedAt, "answered", "after %d ms", r.EndedAt.Sub(r.BegunAt).Milliseconds())
	case w.Quiet:
		w.step(r.EndedAt, "quiet", "the agent chose to say nothing")
	default:
		w.step(r.EndedAt, "failed", "%s: %s", r.State, r.Error)
	}
	switch {
	case w.Answered, w.Quiet:
	case r.EndedAt.IsZero():
		w.Run, w.RunWords = r.State, fmt.Sprintf("the agent %s works on run %s", r.Agent, r.ID)
	default:
		w.Run, w.RunWords = r.State, fmt.Sprintf("the agent %s: %s", r.Agent, cmp.Or(r.Error, "no error"))
		switch {
		case l.Again:
			w.RunWords += "; its messages were asked again, in another run"
		case r.State == "failed":
			w.Repair = "parley runs retry " + r.ID
		}
	}
}

// delivery adds the steps of a delivery.
func (w *Why) delivery(d listing.Delivery, link string) {
	words := fmt.Sprintf("%d (%s): %s, %s", d.ID, KindWords(d.Kind), d.State, english.Plural(int(d.Attempts), "attempt", ""))
	if d.Error != "" {
		words += ": " + d.Error
	}
	w.step(d.CreatedAt, "delivery", "%s", words)
	if d.State == "sent" {
		sent := fmt.Sprintf("delivery %d", d.ID)
		if d.PlatformID != "" {
			sent += " as " + d.PlatformID
		}
		w.Steps = append(w.Steps, LifeStep{At: d.DueAt, What: "sent", Detail: sent, Link: link})
	}
}

// judge adds the words of the reason and the settings behind it. An unset list or limit has decided nothing, unless no
// other setting has. A message of an agent or of Parley has no reason: its words name its run.
func (w *Why) judge(l *listing.Life, c *config.Config) {
	known, ok := reasons[w.Reason]
	if m := l.Message; !ok && m != nil && w.Reason == "" && m.Role() != messages.ByHuman.Role() {
		w.Words = "nobody asked for it"
		if l.Run != nil {
			w.Words = fmt.Sprintf("run %s of agent %s wrote it: parley why %[1]s tells why the agent was asked", l.Run.ID, l.Run.Agent)
		}
	}
	if !ok {
		return
	}
	w.Words, w.Change = known.words, known.change
	var unset []config.Setting
	for _, key := range known.keys {
		switch setting, ok := settingOf(c, l, w.Reason, key); {
		case !ok, w.Reason == event.ReasonCommand && w.Trigger == string(messages.TriggerRun): // nobody typed a prefix
		case setting.File == "" && (setting.Value == "" || setting.Value == "0"):
			unset = append(unset, setting)
		default:
			w.Because = append(w.Because, setting)
		}
	}
	if len(w.Because) == 0 {
		w.Because = append(w.Because, unset...)
	}
	if l.Message != nil {
		w.Changed = changedSince(l.Message.CreatedAt, w.Because)
	}
}

// changedSince returns words about the first setting whose file was changed after a time; empty for none.
func changedSince(decided time.Time, because []config.Setting) string {
	for _, s := range because {
		if info, err := os.Stat(s.File); s.File != "" && err == nil && info.ModTime().After(decided) {
			return fmt.Sprintf("%s was changed at %s, after this decision: %s may have had another value then",
				s.File, info.ModTime().UTC().Format("2006-01-02 15:04:05 MST"), s.Key)
		}
	}
	return ""
}

// settingOf returns a setting that decides about a message, by its key in the table of reasons.
func settingOf(c *config.Config, l *listing.Life, reason, key string) (config.Setting, bool) {
	workspace := c.Workspace(l.Workspace)
	if workspace == nil {
		return config.Setting{}, false
	}
	late := reason == event.ReasonTooOld && l.Message != nil && l.Message.Origin == messages.Late
	switch own, isAgent := strings.CutPrefix(key, "agents[]."); {
	case late && key == "policy.max_age": // see ingest.Settings.LateAge
		key = "catch_up.max_age"
	case isAgent:
		agent := workspace.Channel(l.Channel, l.Parent).Agent
		i := slices.IndexFunc(c.Agents, func(a config.Agent) bool { return a.ID == agent })
		main := c.Main()
		if at := slices.IndexFunc(main, func(s config.Setting) bool { return s.Key == fmt.Sprintf("agents[%d].%s", i, own) }); at >= 0 {
			return main[at], true
		}
		return config.Setting{}, false
	case strings.HasPrefix(key, "."):
		key = string(l.Platform) + key
	}
	return c.Setting(l.Workspace, key, l.Channel, l.Parent)
}

// Known reports whether the store has what a reference names: a thread, whose UUID it returns, or a message or a run as in Why.
func (s *Service) Known(ctx context.Context, ref string) (thread string, known bool, err error) {
	t, err := s.Journal.Listing.ThreadOf(ctx, ref)
	if errors.Is(err, storage.ErrNotFound) {
		_, _, err = s.find(ctx, ref)
	}
	if errors.Is(err, storage.ErrNotFound) {
		return "", false, nil
	}
	return t.ID, err == nil, err
}

// Why returns the life of the message that a reference names.
func (c *Client) Why(ctx context.Context, ref string) (Why, error) {
	return Get[Why](ctx, c, "why", url.Values{"ref": {ref}})
}
