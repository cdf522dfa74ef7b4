package event

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// SenderType distinguishes a person from a program.
type SenderType string

// The two sender types of the contract.
const (
	Human SenderType = "human"
	Bot   SenderType = "bot"
)

// operators is the namespace of the sender ids of operators. They are not users of a platform.
const operators = "operator:"

// OperatorSender returns the sender id of an operator.
func OperatorSender(id string) string { return operators + id }

// IsOperator reports whether a sender id is an operator's.
func IsOperator(senderID string) bool { return strings.HasPrefix(senderID, operators) }

// Metadata is the contract's msg_metadata: the sender, the place and the run hints of a
// message. The first four fields are required. Pointers distinguish unset from false.
//
// Parsed metadata keeps its original bytes and marshals to them, until Edited is called
// after a change of a field. Then it marshals to known keys and, after them, the original
// bytes of extra keys.
type Metadata struct {
	Source            string
	SenderID          string // "<namespace>:<external id>", e.g. "slack:U06STGBF4Q0"
	SenderDisplayName string
	SenderType        SenderType

	ChannelExternalID string
	MentionToken      string // "<@U06STGBF4Q0>"; empty is unset
	ThreadContext     string
	IsFromMe          *bool
	Passive           *bool
	TriggerRAG        *bool
	RecipientID       string
	IncludeInMemory   *bool
	MessageGUID       string

	// Extra are the keys that the contract does not know, in their order.
	Extra []Extra

	original []byte
}

// Extra is a key outside the contract, with the original bytes of its value.
type Extra struct {
	Key   string
	Value json.RawMessage
}

// FieldError is one fault of one field.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// FieldErrors are all the faults of a body at once.
type FieldErrors []FieldError

const (
	// MaxFaults is the number of faults of a body that are reported.
	MaxFaults = 20
	// maxFaultText bounds the text of a body's faults, in bytes.
	maxFaultText = 4 << 10
)

// Error names the faulty fields, as far as Capped.
func (e FieldErrors) Error() string {
	var words []string
	for _, f := range e.Capped() {
		words = append(words, f.Field+": "+f.Message)
	}
	return strings.Join(words, "; ")
}

// Capped returns the first faults, at most MaxFaults, that Error writes in 4 KiB. It shortens
// long fields and messages, which may contain input.
func (e FieldErrors) Capped() FieldErrors {
	var capped FieldErrors
	for room := maxFaultText; len(capped) < min(len(e), MaxFaults); {
		f := e[len(capped)]
		f.Field, f.Message = Cut(f.Field, 120), Cut(f.Message, 600)
		if room -= len(f.Field) + len(f.Message) + len(": ; "); room < 0 {
			break
		}
		capped = append(capped, f)
	}
	return capped
}

// Err returns e as an error, which is nil if there is no fault.
func (e FieldErrors) Err() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

// Check adds a fault of the field unless ok.
func (e *FieldErrors) Check(ok bool, field, message string) {
	if !ok {
		*e = append(*e, FieldError{field, message})
	}
}

// field binds one known key to its place in Metadata.
type field struct {
	key      string
	required bool
	text     *string
	flag     **bool
}

// fields lists the known keys in the order of the output.
func (m *Metadata) fields() [13]field {
	return [...]field{
		{key: "source", required: true, text: &m.Source},
		{key: "sender_id", required: true, text: &m.SenderID},
		{key: "sender_display_name", required: true, text: &m.SenderDisplayName},
		{key: "sender_type", required: true, text: (*string)(&m.SenderType)},
		{key: "channel_external_id", text: &m.ChannelExternalID},
		{key: "mention_token", text: &m.MentionToken},
		{key: "thread_context", text: &m.ThreadContext},
		{key: "is_from_me", flag: &m.IsFromMe},
		{key: "passive", flag: &m.Passive},
		{key: "include_in_memory", flag: &m.IncludeInMemory},
		{key: "trigger_rag", flag: &m.TriggerRAG},
		{key: "recipient_id", text: &m.RecipientID},
		{key: "message_guid", text: &m.MessageGUID},
	}
}

// IsKnown reports whether the contract gives a key of the metadata its meaning.
func IsKnown(key string) bool {
	known := new(Metadata).fields()
	return slices.ContainsFunc(known[:], func(f field) bool { return f.key == key })
}

// ParseMetadata reads and validates a metadata object. Keys match exactly; null
// is unset; an error is FieldErrors with every fault.
func ParseMetadata(raw []byte) (Metadata, error) {
	m, faults := readMetadata(raw)
	if len(faults) != 1 || faults[0].Field != "metadata" { // otherwise there is no object to check
		faults = append(faults, m.faults()...)
	}
	var exact FieldErrors // only the first fault of each field, which causes the later ones
	for _, fault := range faults {
		if !slices.ContainsFunc(exact, func(e FieldError) bool { return e.Field == fault.Field }) {
			exact = append(exact, fault)
		}
	}
	if len(exact) > 0 {
		return Metadata{}, exact
	}
	return m, nil
}

// ReadMetadata reads an object that ParseMetadata has validated before, such as a stored
// row. It does not check the required fields again.
func ReadMetadata(raw []byte) (Metadata, error) {
	m, faults := readMetadata(raw)
	return m, faults.Err()
}

func readMetadata(raw []byte) (Metadata, FieldErrors) {
	m := Metadata{original: slices.Clone(raw)}
	object, err := ReadObject(raw)
	var faults FieldErrors
	if err != nil && !errors.As(err, &faults) {
		return m, FieldErrors{{"metadata", err.Error()}}
	}
	for i := range faults {
		faults[i].Field = "metadata." + faults[i].Field
	}
	known := m.fields()
	for _, member := range object {
		i := slices.IndexFunc(known[:], func(f field) bool { return f.key == member.Key })
		if i < 0 {
			m.Extra = append(m.Extra, member)
			continue
		}
		if fault := known[i].set(member.Value); fault != "" {
			faults = append(faults, FieldError{"metadata." + member.Key, fault})
		}
	}
	return m, faults
}

// set decodes value into the field. It returns the fault, or "".
func (f field) set(value json.RawMessage) string {
	switch {
	case string(value) == "null":
		return ""
	case f.flag != nil && (string(value) == "true" || string(value) == "false"):
		*f.flag = new(value[0] == 't')
		return ""
	case f.flag != nil:
		return "must be true, false or null"
	case value[0] != '"':
		return "must be a string"
	}
	s, err := Unquote(value)
	if err != nil {
		return "must be a string"
	}
	*f.text = Text(s)
	return ""
}

// Validate reports whether the contract accepts m; an error is FieldErrors.
func (m *Metadata) Validate() error {
	return m.faults().Err()
}

func (m *Metadata) faults() FieldErrors {
	var faults FieldErrors
	for _, f := range m.fields() {
		if f.required && *f.text == "" {
			faults = append(faults, FieldError{"metadata." + f.key, "is required and must not be empty" + m.typo(f.key)})
		}
	}
	for _, extra := range m.Extra {
		faults.Check(!IsDeep(extra.Value), "metadata."+clip(extra.Key), fmt.Sprintf("must not be nested more than %d deep", maxDepth))
	}
	if m.SenderType != "" && m.SenderType != Human && m.SenderType != Bot {
		faults = append(faults, FieldError{"metadata.sender_type", fmt.Sprintf("is %q, must be human or bot", clip(string(m.SenderType)))})
	}
	if namespace, id, ok := strings.Cut(m.SenderID, ":"); m.SenderID != "" && (!ok || namespace == "" || id == "") {
		faults = append(faults, FieldError{"metadata.sender_id", fmt.Sprintf("is %q, must be <namespace>:<external id>", clip(m.SenderID))})
	}
	return faults
}

// typo returns a hint to an extra key that resembles the missing one.
func (m *Metadata) typo(missing string) string {
	for _, extra := range m.Extra {
		if alike(extra.Key, missing) {
			return fmt.Sprintf(" (the unknown key %q looks like it)", clip(extra.Key))
		}
	}
	return ""
}

// SetSubject sets the subject line. An empty one is unset.
func (m *Metadata) SetSubject(subject string) {
	if subject != "" {
		m.Extra = append(m.Extra, Extra{KeySubject, quote(subject)})
	}
}

// Subject returns the subject line that the author typed above the content; empty for none.
func (m *Metadata) Subject() (subject string) {
	for _, extra := range m.Extra {
		if extra.Key == KeySubject && extra.Value[0] == '"' {
			subject, _ = Unquote(extra.Value) // a valid string always decodes
		}
	}
	return Text(subject)
}

// SetCause sets the sender who has caused a message. An empty one is unset.
func (m *Metadata) SetCause(sender string) {
	if sender != "" {
		m.Extra = append(m.Extra, Extra{KeyCausedBy, quote(sender)})
	}
}

// Cause returns the sender who has caused a message of Parley itself; empty for none.
func (m *Metadata) Cause() (sender string) {
	for _, extra := range m.Extra {
		if extra.Key == KeyCausedBy && extra.Value[0] == '"' {
			sender, _ = Unquote(extra.Value) // a valid string always decodes
		}
	}
	return sender
}

// Traceparent returns the value of KeyTraceparent of a metadata object; empty for none.
func Traceparent(metadata []byte) (value string) {
	if !bytes.Contains(metadata, []byte(`"`+KeyTraceparent+`"`)) {
		return ""
	}
	members, _ := ReadObject(metadata) // an unreadable object names nothing
	for _, m := range members {
		if m.Key == KeyTraceparent && m.Value[0] == '"' {
			value, _ = Unquote(m.Value) // a valid string always decodes
		}
	}
	return value
}

// WithTraceparent returns a metadata object with the value of KeyTraceparent, unless the object has the key.
func WithTraceparent(metadata []byte, value string) []byte {
	members, err := ReadObject(metadata)
	if err != nil || slices.ContainsFunc(members, func(m Extra) bool { return m.Key == KeyTraceparent }) {
		return metadata
	}
	return WriteObject(append(members, Extra{KeyTraceparent, quote(value)}))
}

// placeForm is the form of the JSON of a value of KeyTraceparent. A caller may have written another one.
var placeForm = regexp.MustCompile(`^"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}"$`)

// mayHaveWords reports whether the value of a key may have words of people.
func mayHaveWords(e Extra) bool {
	return !slices.Contains(withoutWords, e.Key) || e.Key == KeyTraceparent && !placeForm.Match(e.Value)
}

// withoutWords are the keys outside the contract whose values are ids and times: no words of people.
var withoutWords = []string{KeyRunID, KeyMessageID, KeyStage, KeyLatency, KeyPlannedAt, KeyCausedBy, KeyPostedBy, KeySentBy, KeyProxiedBy, KeyMentions, KeyTraceparent}

// DropWords removes the words of people: the thread context, and each key that the contract does not know, unless its value is an id or
// a time. It returns whether there were any.
func (m *Metadata) DropWords() bool {
	before := len(m.Extra)
	m.Extra = slices.DeleteFunc(slices.Clone(m.Extra), mayHaveWords)
	dropped := m.ThreadContext != "" || len(m.Extra) < before
	m.ThreadContext = ""
	m.Edited()
	return dropped
}

// DropTexts removes the thread context and the keys that the contract does not know whose text has is true of, unless the value is an id
// or a time. It returns whether there were any.
func (m *Metadata) DropTexts(has func(text []byte) bool) bool {
	before := len(m.Extra)
	m.Extra = slices.DeleteFunc(slices.Clone(m.Extra), func(e Extra) bool { return mayHaveWords(e) && has(e.Value) })
	dropped := len(m.Extra) < before
	if has([]byte(m.ThreadContext)) {
		m.ThreadContext, dropped = "", true
	}
	if dropped {
		m.Edited()
	}
	return dropped
}

// DropName removes the author's name.
func (m *Metadata) DropName() {
	m.SenderDisplayName, m.MentionToken = "", ""
	m.Edited()
}

// Edited drops the original bytes, so that the changed fields are written.
func (m *Metadata) Edited() { m.original = nil }

// MarshalJSON returns Bytes.
func (m Metadata) MarshalJSON() ([]byte, error) { return m.Bytes(), nil }

// Bytes returns the original bytes. If there are none, it writes the set flags, the texts
// that are not empty, and the extra keys.
func (m *Metadata) Bytes() []byte {
	if m.original != nil {
		return m.original
	}
	members := make([]Extra, 0, 16+len(m.Extra))
	for _, f := range m.fields() {
		switch {
		case f.flag != nil && *f.flag != nil:
			members = append(members, Extra{f.key, strconv.AppendBool(nil, **f.flag)})
		case f.text != nil && *f.text != "":
			members = append(members, Extra{f.key, quote(*f.text)})
		}
	}
	return WriteObject(append(members, m.Extra...))
}

// quote writes s as a JSON string, with <, > and & as they are.
func quote(s string) []byte {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' || r == '"' || r == '\\' }) {
		return []byte(`"` + s + `"`)
	}
	raw, _ := JSON(s) // a string always encodes
	return raw
}

// alike reports whether two keys are equal except for case, separators and at most two
// edits: sender_displayname, Sender_ID, senderId.
func alike(a, b string) bool {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(s))
	}
	return within(2, fold(a), fold(b))
}

// within reports whether at most the given number of byte edits turns a into b.
func within(edits int, a, b string) bool {
	for a != "" && b != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if a == "" || b == "" {
		return len(a)+len(b) <= edits
	}
	return edits > 0 && (within(edits-1, a[1:], b) || within(edits-1, a, b[1:]) || within(edits-1, a[1:], b[1:]))
}

// clip shortens an input for an error.
func clip(s string) string { return Cut(s, 80) }
