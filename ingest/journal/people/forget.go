package people

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"parley/ingest/event"
	"parley/ingest/journal/audit"
	"parley/ingest/journal/envelopes"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/record"
	"parley/ingest/journal/runs"
	"parley/ingest/journal/schedules"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/workstreams"
)

// lately is the time after which a message that was on its way when its author was forgotten is recorded.
const lately = 10 * time.Minute

// lateCommit is how long after its row was numbered a message may be committed.
const lateCommit = time.Minute

// Counted is what Forget would erase.
type Counted struct {
	record.Erased
	Naming int64 // messages of agents and of Parley that name the person, among others
}

// Count counts what Forget would erase now.
func (s *People) Count(ctx context.Context, p *Person) (all Counted, err error) {
	for _, workspace := range p.Workspaces {
		x := s.pass(p, messages.Forgotten{Workspace: workspace, SenderID: p.SenderID, At: s.db.Now()})
		if err = x.learn(ctx); err == nil {
			err = x.pages(ctx, func(found) error { return nil })
		}
		if err != nil {
			return all, err
		}
		all.Add(x.counted.Erased)
		all.Naming += x.counted.Naming
		answers, err := messages.CountAnswers(ctx, s.db, workspace, p.SenderID)
		if err != nil {
			return all, err
		}
		all.Answers += answers
	}
	return all, nil
}

// Forget erases what a person has written in all workspaces until now, and what answers it, as record.Recorder.Erase does. It removes
// quotations of the person, the person's reactions, and the person's names: from the messages and the payloads of others, and with what agents
// and Parley have written about the person. What breaks off is done by Resume.
func (s *People) Forget(ctx context.Context, p *Person) (all record.Erased, err error) {
	for _, workspace := range p.Workspaces {
		if err := messages.Forget(ctx, s.db, workspace, p.SenderID); err != nil {
			return all, err
		}
	}
	return s.Resume(ctx, p)
}

// Resume forgets those who are to be forgotten, and looks once more for messages of those who were forgotten lately. Only the names of p,
// if it is not nil, are known besides those in the store.
func (s *People) Resume(ctx context.Context, p *Person) (all record.Erased, err error) {
	due, err := messages.ToForget(ctx, s.db, s.db.Now().Add(-lately))
	for _, f := range due {
		if err != nil {
			break
		}
		person := &Person{SenderID: f.SenderID}
		if p != nil && p.SenderID == f.SenderID {
			person = p
		} else if known, err := s.Find(ctx, f.SenderID); err == nil {
			person = &known
		}
		var made record.Erased
		made, err = s.forget(ctx, person, f)
		all.Add(made)
	}
	return all, err
}

// forget erases what a person has written in a workspace, from a position on.
func (s *People) forget(ctx context.Context, p *Person, f messages.Forgotten) (all record.Erased, err error) {
	x := s.pass(p, f)
	if err := x.learn(ctx); err != nil {
		return all, err
	}
	if f.Position == 0 {
		if err := x.texts(ctx); err != nil {
			return all, err
		}
	}
	if err := x.pages(ctx, func(page found) error {
		made, err := s.recorder.Erase(ctx, page.own)
		if all.Add(made); err != nil {
			return err
		}
		for thread, rows := range page.others {
			made, err := s.recorder.Rewrite(ctx, thread, rows, x.rewrite)
			if all.Add(made); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return all, err
	}
	since := time.Time{}
	if f.Position > 0 { // the earlier runs are done
		since = f.At.Add(-lately)
	}
	if err := s.usage.Forget(ctx, f.Workspace, append(x.payers, f.SenderID), since); err != nil {
		return all, err
	}
	if err := s.search.Forget(ctx, f.Workspace, f.SenderID, f.At); err != nil {
		return all, err
	}
	f.Position = max(x.settled, f.Position, 1)
	return all, messages.SetForgotten(ctx, s.db, f)
}

// pass is one look through the store for a person of a workspace.
type pass struct {
	messages.Forgotten
	*People
	names   []string // each once
	forms   [][]byte // of the names in JSON and in texts
	said    [][]byte // contents of the person's messages
	payers  []string // other sender_ids that paid for the person's questions
	settled int64    // row of the last message before which no other can still be committed
	counted Counted
}

func (s *People) pass(p *Person, f messages.Forgotten) *pass {
	x := &pass{Forgotten: f, People: s}
	for _, name := range append([]string{p.Name}, p.names...) {
		x.name(name)
	}
	return x
}

// leastName is the number of letters of the shortest name that is looked for in texts.
const leastName = 3

// name adds a name of the person.
func (x *pass) name(name string) {
	name = strings.TrimSpace(name)
	if utf8.RuneCountInString(name) < leastName || name == x.SenderID || slices.Contains(x.names, name) {
		return
	}
	x.names = append(x.names, name)
	quoted, _ := json.Marshal(name) // a string
	for _, form := range [][]byte{[]byte(name), quoted[1 : len(quoted)-1], ascii(quoted[1 : len(quoted)-1])} {
		if !slices.ContainsFunc(x.forms, func(known []byte) bool { return bytes.Equal(known, form) }) {
			x.forms = append(x.forms, form)
		}
	}
}

// ascii returns the text of a JSON string with each letter outside ASCII as an escape, as some platforms write it.
func ascii(text []byte) (escaped []byte) {
	for _, r := range string(text) {
		if r < utf8.RuneSelf {
			escaped = append(escaped, byte(r))
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			escaped = append(escaped, `\u`...)
			for shift := 12; shift >= 0; shift -= 4 {
				escaped = append(escaped, "0123456789abcdef"[unit>>shift&15])
			}
		}
	}
	return escaped
}

// learn reads the names that the person had in messages, and their contents.
func (x *pass) learn(ctx context.Context) error {
	for after := x.Position; ; {
		list, err := storage.Read(ctx, x.db, func(tx *storage.Txn) []messages.Message { return messages.SaidBy(tx, x.Workspace, x.SenderID, after) })
		if err != nil || len(list) == 0 {
			return err
		}
		for _, m := range list {
			metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one names nobody
			x.name(metadata.SenderDisplayName)
			if payer := m.Quotes.Payer; payer != "" && !slices.Contains(x.payers, payer) {
				x.payers = append(x.payers, payer)
			}
			if len(m.Content) >= leastWords {
				x.said = append(x.said, []byte(m.Content))
			}
			after = m.Row
		}
	}
}

// isNamed reports whether a text has a name of the person as a word of its own.
func (x *pass) isNamed(text []byte) bool {
	return slices.ContainsFunc(x.forms, func(name []byte) bool { return hasWord(text, name) })
}

// isMeant reports whether a text has a name or the sender_id of the person.
func (x *pass) isMeant(text []byte) bool { return x.isNamed(text) || hasWord(text, []byte(x.SenderID)) }

// leastWords is the number of bytes of the shortest content that is looked for in what operators have written.
const leastWords = 8

// isQuoted reports whether a text has a name or the sender_id of the person, or the content of one of the person's messages.
func (x *pass) isQuoted(text []byte) bool {
	return x.isMeant(text) || slices.ContainsFunc(x.said, func(words []byte) bool { return bytes.Contains(text, words) })
}

// leastID is the number of bytes of the shortest id of a platform that is looked for without its platform.
const leastID = 6

// isCarried reports whether a payload has a name or the platform's id of the person.
func (x *pass) isCarried(payload []byte) bool {
	_, id, _ := strings.Cut(x.SenderID, ":")
	return x.isMeant(payload) || len(id) >= leastID && hasWord(payload, []byte(id))
}

// hasWord reports whether a text has a word that no letter and no digit continues.
func hasWord(text, word []byte) bool {
	for at := 0; ; {
		i := bytes.Index(text[at:], word)
		if i < 0 {
			return false
		}
		begin, end := at+i, at+i+len(word)
		before, _ := utf8.DecodeLastRune(text[:begin])
		after, _ := utf8.DecodeRune(text[end:])
		if !continues(before) && !continues(after) {
			return true
		}
		at = begin + 1
	}
}

func continues(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// texts removes the rows and the texts that name the person and to which no message leads.
func (x *pass) texts(ctx context.Context) error {
	remove := func(t storage.Texts, has func([]byte) bool) error {
		_, err := t.Remove(ctx, x.db, x.Workspace, has)
		return err
	}
	if err := remove(envelopes.Texts(), x.isCarried); err != nil {
		return err
	}
	if err := remove(audit.Texts(), x.isQuoted); err != nil {
		return err
	}
	if err := x.db.Change(ctx, "", func(tx *storage.Txn) { strangers.Erase(tx, x.Workspace, x.SenderID) }); err != nil {
		return err
	}
	for _, t := range slices.Concat([]storage.Texts{outbox.Texts(), workstreams.Texts()}, runs.Texts(), schedules.Texts()) {
		if err := remove(t, x.isMeant); err != nil {
			return err
		}
	}
	return nil
}

// found are the traces of the person in a page of messages.
type found struct {
	own    []messages.Placed // to erase
	others map[int64][]int64 // to rewrite, by thread
}

// pages reads all messages of the workspace after the position, and calls do for what each page has of the person.
func (x *pass) pages(ctx context.Context, do func(found) error) error {
	old := x.db.Now().Add(-lateCommit)
	for after := x.Position; ; {
		page, err := storage.Read(ctx, x.db, func(tx *storage.Txn) []messages.Scanned { return messages.Scan(tx, x.Workspace, after) })
		if err != nil || len(page) == 0 {
			return err
		}
		f := found{others: map[int64][]int64{}}
		for i := range page {
			m := &page[i]
			if after = m.Row; m.CreatedAt.Before(old) {
				x.settled = m.Row
			}
			switch x.sort(m) {
			case erases:
				f.own = append(f.own, messages.Placed{Thread: m.Thread, Row: m.Row})
			case rewrites:
				x.counted.Changed++
				f.others[m.Thread] = append(f.others[m.Thread], m.Row)
			case stays:
			}
		}
		if err := do(f); err != nil {
			return err
		}
	}
}

type sort int

const (
	stays sort = iota
	erases
	rewrites
)

// sort decides about a message.
func (x *pass) sort(m *messages.Scanned) sort {
	own := m.SenderID == x.SenderID
	if m.Author == messages.BySystem {
		metadata, _ := event.ReadMetadata(m.Metadata) // an unreadable one has no cause
		own = metadata.Cause() == x.SenderID || slices.Contains(x.payers, metadata.Cause())
	}
	switch {
	case own && m.SentAt.After(x.At), own && !m.DeletedAt.IsZero() && m.Reason == event.ReasonForgotten:
		return stays
	case own:
		if m.DeletedAt.IsZero() && m.Seq > 0 {
			x.counted.Messages++
			x.counted.Files += m.FileCount
		}
		return erases
	case !m.DeletedAt.IsZero():
		return stays
	case m.Author != messages.ByHuman && m.Author != messages.ByBot:
		if x.isMeant([]byte(m.Content)) || x.isNamed([]byte(m.Quoted)) || x.isNamed(m.Metadata) {
			x.counted.Naming++
			return erases
		}
	case x.isCarried([]byte(m.Quoted)) || x.isMeant([]byte(m.Reacted)) || x.rewrites(m.Metadata) || x.labelled(m.Content) != m.Content:
		return rewrites
	}
	return stays
}

// rewrites reports whether the metadata of another one's message has the person's name or id in its texts.
func (x *pass) rewrites(raw []byte) bool {
	metadata, _ := event.ReadMetadata(raw) // what cannot be read stays
	return x.isMeant(raw) && x.unname(&metadata)
}

// rewrite removes the person from the quotations, the reactions and the metadata of another one's message. It returns whether it changed it.
func (x *pass) rewrite(m *messages.Message) bool {
	if !m.DeletedAt.IsZero() || m.SenderID == x.SenderID {
		return false
	}
	changed := false
	if q := m.Quotes.Quoted; q != nil {
		if x.isBy(q) {
			m.Quotes.Quoted, changed = nil, true
		} else {
			changed = x.unnameQuote(q) || changed
		}
	}
	before := len(m.Quotes.Forwarded)
	m.Quotes.Forwarded = slices.DeleteFunc(m.Quotes.Forwarded, func(q event.Quote) bool { return x.isBy(&q) })
	changed = changed || len(m.Quotes.Forwarded) < before
	for i := range m.Quotes.Forwarded {
		changed = x.unnameQuote(&m.Quotes.Forwarded[i]) || changed
	}
	changed = x.unnameTokens(m.Quotes.Names) || changed
	before = len(m.Reactions)
	m.Reactions = slices.DeleteFunc(m.Reactions, func(r event.Reaction) bool { return r.SenderID == x.SenderID })
	changed = changed || len(m.Reactions) < before
	if content := x.labelled(m.Content); content != m.Content {
		m.Content, changed = content, true
	}
	if metadata, err := event.ReadMetadata(m.Metadata); err == nil && x.isMeant(m.Metadata) && x.unname(&metadata) {
		m.Metadata, changed = metadata.Bytes(), true
	}
	return changed
}

// isBy reports whether a quotation is of the person.
func (x *pass) isBy(q *event.Quote) bool {
	return q.SenderID == x.SenderID || q.SenderID == "" && (x.isCarried([]byte(q.MentionToken)) || slices.Contains(x.names, strings.TrimSpace(q.Name)))
}

// unnameQuote removes the person's name from a quotation of another one.
func (x *pass) unnameQuote(q *event.Quote) bool { return x.unnameTokens(q.Names) }

// unnameTokens removes the person from the names behind tokens.
func (x *pass) unnameTokens(names event.Names) (changed bool) {
	for token, name := range names {
		if x.isCarried([]byte(token)) || slices.Contains(x.names, strings.TrimSpace(strings.TrimPrefix(name, "@"))) {
			delete(names, token)
			changed = true
		}
	}
	return changed
}

// unname removes the texts of metadata that name the person.
func (x *pass) unname(m *event.Metadata) bool { return m.DropTexts(x.isMeant) }

// labelled returns a content without the person's name in its tokens, such as <@U06STGBF4Q0|nora>.
func (x *pass) labelled(content string) string {
	_, id, _ := strings.Cut(x.SenderID, ":")
	open := "<@" + id + "|"
	for from := 0; ; {
		at := strings.Index(content[from:], open)
		if at < 0 {
			return content
		}
		at += from
		end := strings.IndexByte(content[at:], '>')
		if end < 0 {
			return content
		}
		content = content[:at] + "<@" + id + content[at+end:]
		from = at + len(open)
	}
}
