package speak

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"slices"

	"parley/adapters"
	"parley/adapters/web/access"
	"parley/adapters/web/payload"
	"parley/ingest/card"
	"parley/ingest/event"
	"parley/ingest/trace"
)

// injection is the body of a message that a program injects.
type injection struct {
	payload.Body
	to                  adapters.Target
	mentioned, announce bool
}

// inject puts a message of an authenticated caller into a workspace that is not the caller's.
func (a API) inject(w http.ResponseWriter, r *http.Request, workspace string, caller access.Caller, raw []byte) error {
	n, err := a.readInjection(raw)
	if err != nil {
		return err
	}
	m := event.Injected{
		ClientMessageID: n.ClientMessageID, Content: n.Content, Passive: n.Passive, Mentioned: n.mentioned, Announce: n.announce,
	}
	by := caller.Workspace + "/" + caller.Token.ID
	id := n.id(workspace, by)
	at, err := a.Outbox.Locate(r.Context(), workspace, n.to, id)
	if err == nil {
		err = a.Threads.Storage.Keep(r.Context(), w, workspace, by, &n.Body)
	}
	if err != nil {
		return err
	}
	m.ID, m.Thread, m.Channel, m.Parent = event.InjectedID(by, id), at.Thread, at.Channel.ID, at.Channel.Parent
	m.ReplyTo, m.OpenedOn, m.FollowUp = at.ReplyTo, at.OpenedOn, at.FollowUp
	m.Alone = !at.New && !caller.Reads(workspace)
	m.Direct, m.Metadata = at.Channel.Type == event.ChannelDirect, string(trace.Into(r.Context(), n.Metadata))
	for _, f := range n.Attachments {
		m.Files = append(m.Files, event.InjectedFile{
			Attachment: event.Attachment{ID: path.Base(f.Path), Name: f.Name, MimeType: f.MimeType, Size: f.Size}, At: event.Copy{Bucket: f.Bucket, Path: f.Path},
		})
	}
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s, err := a.Threads.Give(r, event.Envelope{Workspace: workspace, Platform: at.Platform, Transport: event.ByProgram, ReceivedAt: a.Threads.Now(), Body: body})
	if err != nil {
		return err
	}
	thread, err := a.Outbox.ThreadID(r.Context(), at.Thread) // it exists now
	if err != nil {
		return err
	}
	return a.Threads.Accepted(w, s, thread, caller)
}

// id returns the UUID of a message: that of an earlier one if the program repeats it.
func (n *injection) id(workspace, by string) string {
	if n.ClientMessageID == "" {
		return payload.NewID()
	}
	m, _ := event.ReadMetadata(n.Metadata) // it is checked
	return payload.UUIDOf(fmt.Sprintf("injected:%q", []string{workspace, by, n.to.Channel, n.to.User, n.to.Thread, m.SenderID, n.ClientMessageID}))
}

// common are the members of an injected message that each message may have.
var common = []string{"content", "metadata", "thread_id", "client_message_id", "passive", "source", "attachments", event.DispatchType, event.DispatchConfig}

// readInjection reads the body of an injected message. Its error is event.FieldErrors.
func (a API) readInjection(raw []byte) (n injection, err error) {
	content, source := false, ""
	faults := payload.Members(payload.ValidUTF8(raw), func(m event.Extra) string {
		if slices.Contains(common, m.Key) {
			content = content || m.Key == "content"
			return n.Set(m, &source)
		}
		if string(m.Value) == "null" && slices.Contains([]string{"to", "mentioned", "announce"}, m.Key) {
			return ""
		}
		return n.set(m)
	})
	if payload.Unreadable(faults) {
		return n, faults
	}
	faults.Check(content, "content", "is required; it may be empty")
	faults.Check(n.Metadata != nil, "metadata", "is required: the contract's source, sender_id, sender_display_name and sender_type")
	if n.ThreadID != "" {
		faults.Check(n.to == adapters.Target{}, "to", "must be left out beside thread_id")
		n.to = adapters.Target{Thread: n.ThreadID}
	}
	faults = append(faults, n.to.Check()...)
	faults = append(faults, n.MergeSource(source)...)
	if n.Metadata != nil {
		faults = append(faults, a.checkSender(n.Metadata)...)
	}
	if faults = append(faults, n.Unsent()...); len(faults) == 0 {
		faults = n.JoinDispatch()
	}
	return n, faults.Err()
}

// set reads a member that only an injected message has.
func (n *injection) set(m event.Extra) string {
	switch m.Key {
	case "to":
		return n.to.Read(m.Value)
	case "mentioned":
		return flag(m.Value, &n.mentioned)
	case "announce":
		return flag(m.Value, &n.announce)
	}
	return "is not a key of an injected message; the known keys are content, metadata, thread_id, to, passive, mentioned, announce, " +
		"dispatch_type, dispatch_config, client_message_id, source and attachments"
}

func flag(value json.RawMessage, into *bool) string {
	if json.Unmarshal(value, into) != nil {
		return "must be true or false"
	}
	return ""
}

// checkSender returns the faults of the metadata: it must be complete, and its sender must be nobody whom a platform, or
// Parley itself, names.
func (a API) checkSender(raw []byte) event.FieldErrors {
	m, faults := payload.ParseMetadata(raw)
	if len(faults) > 0 {
		return faults
	}
	faults.Check(!access.ReadsLike(m.Source, a.Reserved), "metadata.source", "must name the program, and not a platform: the platform's own people write there themselves")
	faults.Check(!access.ReadsLike(m.SenderID, a.Reserved), "metadata.sender_id", "must not begin with the name of a platform, nor with one of Parley's own")
	faults = append(faults, m.RefusedTo(event.Program)...)
	return append(append(faults, access.Recipient(raw)...), card.Check(raw, "metadata")...)
}
