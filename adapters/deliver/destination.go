package deliver

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/adapters"
	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// Notice implements turn.Outbox and ingest.Notifier: it returns a text of our own about a
// run. If the platform can, it shows the text to the asker alone. People who have not seen the question are told nothing.
func (o *Outbox) Notice(run *runs.Run, text string) []outbox.Post {
	list, err := o.notice(run, text)
	if err != nil {
		o.Log.Error("a notice is not posted", "workspace", run.Workspace, "run", run.ID, "err", err)
	}
	return list
}

func (o *Outbox) notice(run *runs.Run, text string) (list []outbox.Post, err error) {
	defer adapters.Recover(o.Log, &err, "workspace", run.Workspace)
	platform, to, err := o.way(run)
	if err != nil || platform.Sender == nil || !isSeen(run) {
		return nil, err
	}
	if one, ok := platform.Sender.(adapters.Ephemeral); ok && to.Asker != "" {
		address := one.EphemeralAddress(adapters.Address{Channel: to.Channel, Place: to.Place}, answered(run))
		to.Channel, to.Place, to.Alone = address.Channel, address.Place, true
	}
	return posts(to, platform.Sender.Format(text, nil)), nil
}

// way returns the platform of a run's posts, and a post without a text that has their
// destination and their asker. The platform has no Sender if nothing is posted.
func (o *Outbox) way(run *runs.Run) (platform Platform, to outbox.Post, err error) {
	platform, ok := o.Platform(run.Workspace)
	if !ok {
		return platform, to, fmt.Errorf("workspace %q is not configured", run.Workspace)
	}
	if event.IsWorkstream(run.ThreadKey) {
		platform.Sender = nil
	}
	if platform.Sender == nil {
		return platform, to, nil
	}
	key := conversation(platform, run.Workspace, run.Channel, run.ThreadKey)
	if run.Above != "" {
		key = cmp.Or(under(platform, run.Workspace, key, run.Above), key)
	}
	address, err := platform.Sender.Address(key, answered(run))
	if dispatcher, ok := platform.Sender.(adapters.Dispatcher); ok && err == nil {
		address = dispatch(dispatcher, address, run)
	}
	if beside := platform.Of.Beside; beside != nil && platform.Beside != nil && platform.Beside(run.Channel, run.Parent) {
		address = beside(address, answered(run))
	}
	return platform, outbox.Post{Channel: address.Channel, Place: address.Place, Asker: asker(run)}, err
}

// dispatch returns the address of an answer to the last message of a run's turn that the platform knows.
func dispatch(d adapters.Dispatcher, to adapters.Address, run *runs.Run) adapters.Address {
	for i := len(run.Messages) - 1; i >= 0; i-- {
		if m := &run.Messages[i]; m.Author != messages.BySystem && !isInjected(m.ExternalID) {
			metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one has nothing to give back
			return d.Dispatch(to, metadata)
		}
	}
	return to
}

// conversation returns the key of the platform's thread for a thread of ours: that of the channel for the own thread of a tick.
func conversation(platform Platform, workspace, channel string, thread event.ThreadKey) event.ThreadKey {
	if event.IsTick(thread) && platform.Of.Conversation != nil {
		return platform.Of.Conversation(workspace, channel)
	}
	return thread
}

// posts returns a copy of to for each text.
func posts(to outbox.Post, texts []string) (list []outbox.Post) {
	for _, text := range texts {
		to.Text = text
		list = append(list, to)
	}
	return list
}

// maxFileName and maxExtension bound the parts of a file's name, in bytes. File systems take 255.
const maxFileName, maxExtension = 150, 16

// fileName returns a file's name as platforms get it. A line end would break the form in which
// a file is uploaded. A character that changes the order of text would hide the name's end. A slash would lead out of the folder in which a BlueBubbles server keeps it.
func fileName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp) || r == '/' || r == '\\' || r == utf8.RuneError {
			return '_'
		}
		return r
	}, name)
	if strings.Trim(name, ".") == "" { // a folder
		return "file"
	}
	extension := path.Ext(name)
	if len(extension) > maxExtension {
		extension = ""
	}
	base := strings.TrimSuffix(name, extension)
	for len(base) > maxFileName {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	return base + extension
}

// answered returns the external id of the last message in a run's turn that the platform knows. Parley's own messages are not
// on the platform, and of an injected one only its announcement is. If the turn has none, answered is the post under which the
// thread goes on; empty if there is none.
func answered(run *runs.Run) string {
	for i := len(run.Messages) - 1; i >= 0; i-- {
		switch m := &run.Messages[i]; {
		case m.Author == messages.BySystem:
		case !isInjected(m.ExternalID):
			return m.ExternalID
		case run.Announced[m.UUID] != "":
			return run.Announced[m.UUID]
		}
	}
	return run.Above
}

// asker returns the platform's id of the author of the last message in a run's turn. It is
// empty if the author is unknown, or is an operator or the sender of an injected message: the platform does not know those.
func asker(run *runs.Run) string {
	for i := len(run.Messages) - 1; i >= 0; i-- {
		if m := &run.Messages[i]; m.Author == messages.ByHuman && !event.IsOperator(m.SenderID) && !isInjected(m.ExternalID) {
			_, id, _ := strings.Cut(m.SenderID, ":")
			return id
		}
	}
	return ""
}
