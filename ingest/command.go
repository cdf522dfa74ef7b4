package ingest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/stream"
)

// Commands are the settings of the chat commands.
type Commands struct {
	// Prefix precedes the word of a command, such as / in /stop.
	Prefix string `yaml:"prefix"`
}

// DefaultCommands returns the settings that the configuration changes.
func DefaultCommands() Commands { return Commands{Prefix: "/"} }

// maxPrefix bounds the prefix of commands, in bytes.
const maxPrefix = 8

// Validate returns every fault, by key, without any value.
func (c Commands) Validate() event.FieldErrors {
	var faults event.FieldErrors
	faults.Check(c.Prefix != "" && len(c.Prefix) <= maxPrefix && len(strings.Fields(c.Prefix)) == 1 && strings.TrimSpace(c.Prefix) == c.Prefix,
		"prefix", fmt.Sprintf("must have 1 to %d bytes and no white space", maxPrefix))
	return faults
}

// subject returns the chat command that a message is, and its subject; empty for none. Its text is exactly the
// prefix and the word, beside mentions and the word that called us; a command with a subject has a word more. The case of the
// word and marks at the end do not matter: the keyboards of telephones write /Stop and /stop. by themselves.
func (g gate) subject(m *event.Message) (command record.Command, subject string) {
	if m.Metadata.SenderType != event.Human || g.kind != event.KindMessage && g.kind != event.KindCommand && g.kind != event.KindEdit {
		return "", ""
	}
	word, ok := m.Command, true
	if word == "" {
		word, ok = g.cutPrefix(g.said(m, maxCommand+len(strings.Fields(m.Called))))
	}
	word, subject, more := strings.Cut(strings.TrimRight(word, finalMarks), " ")
	command = record.Command(strings.ToLower(word))
	plain := []record.Command{record.CommandStop, record.CommandNew, record.CommandStatus, record.CommandSchedules}
	switch {
	case !ok:
	case !more && slices.Contains(plain, command), more && command == record.CommandUnschedule && !strings.Contains(subject, " "):
		return command, subject
	case g.Chooses && (command == record.CommandMode || command == record.CommandModel) && !strings.Contains(subject, " "):
		return command, subject
	}
	return "", ""
}

// maxCommand is a number of words that no command has. Of a long text, no more words are read.
const maxCommand = 3

// finalMarks are the marks with which people, and the keyboards of telephones, end a command.
const finalMarks = " .!?,;:…。！？，"

// cutPrefix returns a text without the prefix of commands, in any case; false if the text does not begin with it. A slash may have
// the full width of Chinese and Japanese keyboards.
func (g gate) cutPrefix(text string) (rest string, ok bool) {
	if g.Prefix == "/" {
		text = strings.Replace(text, "／", "/", 1)
	}
	if len(text) < len(g.Prefix) || !strings.EqualFold(text[:len(g.Prefix)], g.Prefix) {
		return text, false
	}
	return text[len(g.Prefix):], true
}

// command is subject without the subject.
func (g gate) command(m *event.Message) record.Command {
	command, _ := g.subject(m)
	return command
}

// said returns a message's text without mentions, without the word that called us, and without
// the name of the platform's command. It has at most a number of words, beside marks.
func (g gate) said(m *event.Message, most int) string {
	text := m.Content
	if g.kind == event.KindCommand { // such as /parley /stop
		if name, rest, found := strings.Cut(text, " "); found && strings.HasPrefix(name, "/") {
			text = rest
		}
	}
	var words []string
	for word := range strings.FieldsSeq(text) {
		if word = withoutMentions(word); word == "" {
			continue
		}
		if words = append(words, word); strings.Trim(word, finalMarks) != "" {
			most--
		}
		if most <= 0 {
			break
		}
	}
	rest := strings.Join(words, " ")
	if called := strings.TrimPrefix(rest, "@"); m.Called != "" && len(called) > len(m.Called) && strings.EqualFold(called[:len(m.Called)], m.Called) {
		rest = strings.TrimLeft(called[len(m.Called):], ",: ")
	}
	return rest
}

// withoutMentions returns a word without the platform's tokens for users and roles at its beginning, and the marks behind them.
func withoutMentions(word string) string {
	for strings.HasPrefix(word, "<@") {
		_, rest, ok := strings.Cut(word, ">")
		if !ok {
			break
		}
		word = strings.TrimLeft(rest, ",:")
	}
	return word
}

// obey returns the decision about a command that policy admits. It is no input of an agent.
func (g gate) obey(m *event.Message, command record.Command) record.Decision {
	_, subject := g.subject(m)
	if chooses(command) && subject != "" && !g.approves(g.Agent, m) {
		d := g.private(m, event.ReasonCommand, notChosenText)
		d.Trigger = messages.TriggerNone
		return d
	}
	return record.Decision{
		Trigger: messages.TriggerNone, Reason: event.ReasonCommand, Command: command, Subject: subject, Above: g.above, Tell: tell(m, ""),
	}
}

// notChosenText is the answer to a command that only approvers may give: another mode may ask for no permissions.
const notChosenText = "Sorry, only the approvers of this agent can choose that."

// chooses reports whether a command chooses a setting of the agent.
func chooses(command record.Command) bool {
	return command == record.CommandMode || command == record.CommandModel
}

// restarts starts a direct conversation again with a message that asks for a run, if no message came for a long time.
func (g gate) restarts(m *event.Message, d record.Decision, look record.Look) record.Decision {
	if g.RestartAfter > 0 && m.Channel.Type == event.ChannelDirect && g.kind != event.KindEdit && d.Trigger == messages.TriggerRun && d.Tell == nil && look.Question() == nil &&
		look.Quiet(g.now().Add(-g.RestartAfter)) {
		d.Restart, d.Tell = true, tell(m, "It was quiet here for long, so I begin anew: I don't see what was said here before.")
	}
	return d
}

// answer returns what the sender of a command is told.
func (g gate) answer(command record.Command, state record.ThreadState) string {
	switch {
	case command == record.CommandNew:
		return "I begin anew: from now on I don't see what was said here before."
	case command == record.CommandStatus:
		return g.status(state)
	case command == record.CommandSchedules:
		return g.scheduled(state)
	case chooses(command):
		return g.chosen(string(command), state)
	case command == record.CommandUnschedule && state.Canceled:
		return "It is cancelled."
	case command == record.CommandUnschedule:
		return "There is no such schedule in this thread. " + g.Prefix + string(record.CommandSchedules) + " lists them."
	case state.Run != "" || state.Waiting > 0 || state.Asks || state.Working > 0:
		return "Stopped."
	}
	return "There is nothing to stop."
}

// chosen returns the answer to a command for a setting of the agent.
func (g gate) chosen(name string, state record.ThreadState) string {
	if state.Picked != "" {
		return fmt.Sprintf("From the next answer on, the %s is: %s", name, state.Picked)
	}
	i := slices.IndexFunc(state.Choices, func(c stream.Choice) bool { return c.Name == name })
	if i < 0 {
		return fmt.Sprintf("%s has offered no %s in this thread yet. It can do so with its next answer.", g.Agent, name)
	}
	lines := []string{fmt.Sprintf("The %s is: %s", name, cmp.Or(state.Choices[i].Value(), "unknown"))}
	for n, v := range state.Choices[i].Values {
		lines = append(lines, fmt.Sprintf("%d. %s", n+1, v.Label))
	}
	return strings.Join(append(lines, fmt.Sprintf("Choose one with %s%s and its number.", g.Prefix, name)), "\n")
}

// maxPrompt bounds the characters of a prompt in the list of schedules.
const maxPrompt = 80

// scheduled lists the schedules of a thread that agents made, the next one first.
func (g gate) scheduled(state record.ThreadState) string {
	if len(state.Schedules) == 0 {
		return "Nothing is scheduled in this thread."
	}
	var lines []string
	for i := range state.Schedules {
		s := &state.Schedules[i]
		zone, err := time.LoadLocation(s.TimeZone)
		if err != nil {
			zone = time.UTC
		}
		when := s.NextAt.In(zone).Format("2006-01-02 15:04 MST")
		if s.Cron != "" {
			when += " (" + s.Cron + ")"
		}
		prompt := strings.Join(strings.Fields(s.Prompt), " ")
		if short := event.Beginning(prompt, maxPrompt); len(short) < len(prompt) {
			prompt = short + "…"
		}
		lines = append(lines, fmt.Sprintf("- %s, %s: %s", s.ID, when, prompt))
	}
	return strings.Join(append(lines, "End one with "+g.Prefix+string(record.CommandUnschedule)+" and its id."), "\n")
}

// status describes the work in a thread, with its workstreams, and why the next question gets no answer.
func (g gate) status(state record.ThreadState) string {
	lines := []string{g.working(state)}
	if g.pause != nil {
		lines = append(lines, "The next question gets no answer: "+(&PausedError{*g.pause}).Error())
	}
	if state.Spent != nil {
		lines = append(lines, "The next question gets no answer: "+spentText(state.Spent.Until))
	}
	for i := range state.Workstreams {
		w := &state.Workstreams[i]
		lines = append(lines, fmt.Sprintf("- %s works for %s since %s: %s", cmp.Or(w.Name, w.Agent), w.Asker, w.LaunchedAt.UTC().Format("15:04:05 UTC"), w.Progress))
	}
	for i := range state.Choices {
		if value := state.Choices[i].Value(); value != "" {
			lines = append(lines, fmt.Sprintf("- %s: %s", state.Choices[i].Name, value))
		}
	}
	return strings.Join(lines, "\n")
}

// working describes the run and the waiting messages of a thread.
func (g gate) working(state record.ThreadState) string {
	text := g.Agent + " has nothing to do here."
	if len(state.Workstreams) > 0 {
		text = g.Agent + " waits for others."
	}
	if state.Asks {
		text = g.Agent + " waits for the answer to its question."
	} else if state.Run != "" {
		does := "has been working"
		switch {
		case state.Taken:
			does = "has taken the question, and has been thinking about it"
		case state.Attempts > 0:
			does = fmt.Sprintf("has failed (attempts: %d) and tries again; it has been working", state.Attempts)
		}
		text = fmt.Sprintf("%s %s since %s (%s).", state.Agent, does, state.BegunAt.UTC().Format("15:04:05 UTC"), g.now().Sub(state.BegunAt).Round(time.Second))
	}
	switch state.Waiting {
	case 0:
		return text
	case 1:
		return text + " One message waits for an answer."
	}
	return fmt.Sprintf("%s %d messages wait for an answer.", text, state.Waiting)
}
