package turn

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"

	"parley/assembly"
	"parley/assembly/runinput"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
	"parley/ingest/stream"
)

// storeError is a failure of the store, not of the agent.
type storeError struct{ error }

// input assembles the agent's input.
func (a *attempt) input(ctx context.Context) (assembly.Input, error) {
	window := a.settings.Window
	input := assembly.Input{RunID: a.run.AgentID(), Workspace: a.run.Workspace, Platform: a.run.Platform}
	sight, err := a.Workspaces.Sight(ctx, a.run)
	if err != nil {
		return input, err
	}
	if a.History != nil && a.run.ContextAfter == 0 && a.run.History == nil && (sight == nil || !sight.Bounded()) {
		if err := a.History.ReadHistory(ctx, &a.claim.Claim, a.run, window.Thread); err != nil {
			return input, err
		}
	}
	turns, err := a.Runs.Transcript(ctx, a.run, runs.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread})
	if err != nil {
		return input, err
	}
	if input.ThreadID = threadID(a.run, sight); sight != nil {
		if err := sight.Hide(ctx, turns); err != nil {
			return input, err
		}
	}
	current := &turns[len(turns)-1]
	if len(current.Messages) == 0 {
		return input, ErrWithdrawn // after the run began
	}
	a.keepFiles(ctx, turns)
	a.readWords(ctx, turns)
	l := lines{agent: a.run.Agent, documents: a.takesDocuments()}
	shown := make([]assembly.Turn, len(turns))
	for i := range turns {
		shown[i] = l.turn(&turns[i])
	}
	if l.err != nil {
		return input, l.err
	}
	if err := l.nameOwn(ctx, a.Deliveries, a.run.Workspace); err != nil {
		return input, err
	}
	if input.Resume, err = a.resume(ctx); err != nil {
		return input, err
	}
	input.Messages = assembly.Assemble(a.profile.ID, shown, window, a.Mentions, a.Agents.AgentIDs()...)
	input.Said = said(current.Messages)
	input.Speakers = assembly.FindSpeakers(a.profile.ID, shown, a.Mentions, a.Agents.AgentIDs()...)
	input.Speakers.Account = func() string { return a.account(ctx) }
	input.Notes = a.notes(ctx, input.Messages, shown)
	if a.settings.Names && !a.settings.NoMentions {
		input.Notes.Mentions = input.Speakers.People
	}
	if _, keeps := a.profile.Agent.(KeepsSessions); keeps {
		if input.Session, err = a.Runs.Session(ctx, a.run, input.ThreadID); err != nil {
			return input, err
		}
		input.Stay = func() func() { return a.Work.Keep(a.claim) }
		input.Asking = func() (bool, error) { return a.Runs.IsAsking(context.WithoutCancel(ctx), a.run.ID) }
		input.KeepSession = func(session string, take bool) error {
			return a.Runs.KeepSession(context.WithoutCancel(ctx), &a.claim.Claim, a.run, input.ThreadID, session, take)
		}
	}
	if _, works := a.profile.Agent.(WorksOn); works && a.Tokens != nil {
		if input.Push, err = a.Tokens.Push(ctx, input.RunID); err != nil {
			return input, err
		}
	}
	if _, offers := a.profile.Agent.(OffersChoices); offers {
		if input.Choices, err = a.Runs.Choices(ctx, a.run); err != nil {
			return input, err
		}
		input.Offer = func(choices []stream.Choice) error {
			return a.Runs.Offer(context.WithoutCancel(ctx), &a.claim.Claim, a.run, choices)
		}
	}
	if a.Tokens != nil {
		if input.RunToken, err = a.Tokens.Token(ctx, a.run.ID); err != nil {
			return input, err
		}
	}
	return input, a.addGiven(ctx, &input)
}

// namesTime bounds the lookups of names for one input.
const namesTime = time.Second

// lookup returns a function that finds the name behind a token, until namesTime is over.
func (a *attempt) lookup(ctx context.Context) (name func(token string) (string, bool), cancel func()) {
	ctx, cancel = context.WithTimeout(ctx, namesTime)
	return func(token string) (string, bool) {
		if a.Names == nil || ctx.Err() != nil {
			return "", false
		}
		return a.Names.Name(ctx, a.run, token)
	}, cancel
}

// account returns the name of the agent's account on the platform; empty if it is unknown.
func (a *attempt) account(ctx context.Context) string {
	id := a.Workspaces.Self(a.run).UserID
	if id == "" {
		return ""
	}
	lookup, cancel := a.lookup(ctx)
	defer cancel()
	name, _ := lookup("<@" + id + ">")
	return name
}

// notes returns the facts beside the messages.
func (a *attempt) notes(ctx context.Context, messages []assembly.Message, turns []assembly.Turn) assembly.Notes {
	zone := a.settings.TimeZone
	if zone == nil {
		zone = time.UTC
	}
	lookup, cancel := a.lookup(ctx)
	defer cancel()
	return assembly.Notes{
		Now: a.Now().In(zone), Place: a.place(ctx), Names: assembly.FindNames(messages, turns, lookup), Days: assembly.FindDays(messages, turns, zone),
	}
}

// place returns the names of the place of the conversation.
func (a *attempt) place(ctx context.Context) event.Place {
	if a.Names == nil {
		return event.Place{}
	}
	ctx, cancel := context.WithTimeout(ctx, namesTime)
	defer cancel()
	found, _ := a.Names.Place(ctx, a.run)
	return assembly.CleanPlace(found)
}

// addGiven adds what a client of the run protocol gave for the run.
func (a *attempt) addGiven(ctx context.Context, input *assembly.Input) error {
	var native assembly.Native
	agent, takes := a.profile.Agent.(TakesGiven)
	if takes {
		native = agent.TakesGiven()
	}
	raw, err := a.Runs.RunInput(ctx, a.run)
	if err == nil && raw == nil && takes && !native.Facts { // others get it with the message
		dispatched := &runinput.Rest{Context: assembly.DispatchFacts(input.Said)}
		input.Messages, err = assembly.AddGiven(input.Messages, dispatched, native)
	}
	if err != nil || raw == nil {
		return err
	}
	if input.Given, err = runinput.ReadRest(raw); err != nil {
		return err
	}
	if input.Given.ParentRunID, err = a.parent(ctx, input.Given.ParentRunID); err != nil {
		return err
	}
	input.Messages, err = assembly.AddGiven(input.Messages, &input.Given, native)
	return err
}

// parent returns the id by which the agent knows the run that a client gave as the parent; empty for
// none. A run that asked a question is none: the input would pass for an answer that the policy has
// admitted.
func (a *attempt) parent(ctx context.Context, given string) (string, error) {
	if given == "" {
		return "", nil
	}
	id, err := a.Runs.AgentID(ctx, a.run.Thread, given)
	if err != nil {
		return "", err
	}
	if asked, err := a.Runs.HasAsked(ctx, id); err != nil || asked {
		return "", err
	}
	return id, nil
}

// threadID returns the id by which the agent knows the thread. After a command for a new
// context, and for a program that sees a part of the thread alone, it is another one, because an agent may remember
// the earlier turns by it.
func threadID(run *runs.Run, sight *runs.Sight) string {
	space, err := uuid.Parse(run.ThreadID)
	if err == nil && run.ContextFrom != 0 {
		space = uuid.NewSHA1(space, fmt.Appendf(nil, "new:%d", run.ContextFrom))
	}
	if err == nil && sight != nil && sight.Bounded() {
		space = uuid.NewSHA1(space, []byte("program:"+sight.Program))
	}
	if err != nil {
		return run.ThreadID
	}
	return space.String()
}

// said returns the messages of a turn as their authors typed them, in the same order.
func said(messages []messages.Message) []assembly.Said {
	out := make([]assembly.Said, len(messages))
	for i := range messages {
		m := &messages[i]
		out[i] = assembly.Said{ID: m.UUID, Content: m.Content, Metadata: m.Metadata, Files: new(lines).filesOf(m)}
	}
	return out
}

// maxFiles is the number of files of one message that are copied. Slack and Discord allow no
// more. The agent sees only the names of further files.
const maxFiles = 10

// keepFiles copies the files of the turns for the agent, those of the newest turn first, and then the newest pictures and
// texts of that turn's block. An earlier turn has a file without a copy if the copy was lost, or if its place was away. After
// the first file that can't be copied, the files of earlier turns wait for a later run, because
// each of them might take as long as that one. All together take at most half of the run's
// time.
func (a *attempt) keepFiles(ctx context.Context, turns []runs.Turn) {
	ctx, cancel := context.WithTimeout(ctx, a.profile.Timeout/2)
	defer cancel()
	failed := false
	keep := func(m *messages.Message, current, wanted bool, most int) (kept int) {
		list := m.Attachments[:min(len(m.Attachments), most)]
		for j := range list {
			file := &list[j]
			isPicture := isPicture(file.MimeType) || file.NeedsConversion()
			switch {
			case a.profile.Files == FilesText && file.Words != "" && !isPicture: // its words are known
			case file.State != files.Pending || failed && !current:
			case !wanted && !isPicture && !(a.takesDocuments() && assembly.IsDocument(file.Name, file.MimeType)) && !(a.profile.Files == FilesText && mayBeText(file.Name, file.MimeType)): // it would only be named
			default:
				var end Copying
				*file, end = a.Files.Keep(ctx, a.run.Workspace, m.SenderID, *file)
				if end != "" && current && wanted && a.run.Attempts == 0 {
					a.said.events.add(fileSaid(file.Attachment, end))
				}
				failed = failed || file.State != files.Stored
			}
			kept++
		}
		return kept
	}
	for i := len(turns) - 1; i >= 0; i-- {
		for j := range turns[i].Messages {
			keep(&turns[i].Messages[j], i == len(turns)-1, true, maxFiles)
		}
	}
	left := maxFiles
	for _, m := range inBlock(&turns[len(turns)-1]) {
		if m.Author != messages.ByAgent {
			left -= keep(m, true, false, left)
		}
	}
}

// takesDocuments reports whether the agent may get documents.
func (a *attempt) takesDocuments() bool {
	agent, ok := a.profile.Agent.(TakesDocuments)
	return ok && agent.TakesDocuments()
}

// inBlock returns the messages of a turn's block, the newest first.
func inBlock(t *runs.Turn) (list []*messages.Message) {
	for i := range t.Context {
		list = append(list, &t.Context[i])
	}
	if t.Root != nil {
		list = append(list, t.Root)
	}
	for i := range slices.Backward(t.OpenedOn) {
		list = append(list, &t.OpenedOn[i])
	}
	return list
}

// Copying is the end of the copying of a file of a message.
type Copying string

// The ends of a copying. No other one is told: the file may be copied by a later run.
const (
	Copied   Copying = "copied"
	TooLarge Copying = "too_large"
	Refused  Copying = "refused" // there is no room for it, or its source did not send it
)

// endings are the words for the ends of copyings.
var endings = map[Copying]string{Copied: "was copied", TooLarge: "is too large and was not copied", Refused: "was refused and not copied"}

// fileSaid returns the SYSTEM message about the copying of a file.
func fileSaid(f event.Attachment, end Copying) stream.Message {
	details, _ := json.Marshal(map[string]any{"file": f.Name, "mime_type": f.MimeType, "size": f.Size, "state": end}) // texts and a number always encode
	return stream.Message{Type: stream.System, Text: fmt.Sprintf("The file %s %s.", event.Beginning(event.Text(f.Name), maxSaidName), endings[end]), Details: details}
}

// maxSaidName bounds the name of a file in a message about it, in bytes.
const maxSaidName = 200

// Mentions are those that take effect in an answer.
type Mentions struct {
	Tokens []string        // any other token was invented by the agent
	Names  []assembly.Name // of the people whom the answer may mention as @Name
}

// mentions returns the mentions that may take effect in the answer to the input.
func (a *attempt) mentions() (m Mentions) {
	input := &a.report.Input
	if a.settings.NoMentions {
		return m
	}
	m.Tokens = mentions(input.Messages)
	m.Names = input.Notes.Mentions
	return m
}

// mention matches a token that names a user or a channel.
var mention = regexp.MustCompile(`<[@#][^<>\n]{1,125}>`)

// mentions returns the tokens of the form <@…> and <#…> in an input, each once, without those of
// the agent's own answers. The agent may copy them into its answer. Any other token in an answer
// was invented by the agent, now or earlier.
func mentions(messages []assembly.Message) (tokens []string) {
	for _, m := range messages {
		if m.Role == assembly.RoleAssistant {
			continue
		}
		for _, part := range m.Parts {
			tokens = append(tokens, mention.FindAllString(part.Text, -1)...)
		}
	}
	slices.Sort(tokens)
	return slices.Compact(tokens)
}

// Given is an agent's input as an operator sees it.
type Given struct {
	Run   string
	Agent string
	// Kept is the input that the agent got, a JSON list of messages; empty if it is not kept.
	Kept string
	// Messages are the input as it would be assembled now.
	Messages []assembly.Message
	// Typed are the texts of people's messages in it, as their authors typed them, by UUID.
	Typed map[string]string
}

// GivenTo returns the input of a run, or of the newest run, of a thread, by the thread's UUID: as the agent got it, if
// that is kept, and as it would be now. It changes nothing and asks nobody. It fails with
// storage.ErrNotFound if the thread has no such run.
func GivenTo(ctx context.Context, from *runs.Runs, sent *outbox.Outbox, thread, run string, windowOf func(*runs.Run) assembly.Window, mentions assembly.Mentions, agents ...string) (Given, error) {
	var window assembly.Window
	past, err := from.PastInput(ctx, thread, run, func(run *runs.Run) runs.Window {
		window = windowOf(run)
		return runs.Window{Turns: window.Turns, Bytes: window.Bytes, Context: window.Thread}
	})
	if err != nil {
		return Given{}, err
	}
	shown := Given{Run: past.Run.ID, Agent: past.Run.Agent, Kept: past.Kept}
	l := lines{agent: past.Run.Agent}
	turns := make([]assembly.Turn, len(past.Turns))
	for i := range past.Turns {
		turns[i] = l.turn(&past.Turns[i])
	}
	if l.err != nil {
		return Given{}, l.err
	}
	if err := l.nameOwn(ctx, sent, past.Run.Workspace); err != nil {
		return Given{}, err
	}
	shown.Typed = map[string]string{}
	for _, t := range past.Turns {
		for _, m := range t.Messages {
			shown.Typed[m.UUID] = m.Content
		}
	}
	shown.Messages = assembly.Assemble(past.Run.Agent, turns, window, mentions, agents...)
	return shown, nil
}

// LastInput is GivenTo for the newest run of a thread.
func (r *Runner) LastInput(ctx context.Context, thread string) (Given, error) {
	return GivenTo(ctx, r.Runs, r.Deliveries, thread, "", func(run *runs.Run) assembly.Window { return r.Workspaces.Settings(run.Place).Window }, r.Mentions, r.Agents.AgentIDs()...)
}
