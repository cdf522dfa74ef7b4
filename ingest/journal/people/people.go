// Package people finds the people who have written, lists what a person wrote, and forgets a person: what the person wrote, what answers
// it, quotations of it and the person's name leave the store.
package people

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/ingest/journal/files"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/search"
	"parley/ingest/journal/storage"
	"parley/ingest/journal/strangers"
	"parley/ingest/journal/usage"
)

// People are the people in a journal.
type People struct {
	db        *storage.DB
	recorder  *record.Recorder
	search    *search.Search
	usage     *usage.Usage
	strangers *strangers.Strangers
}

// New returns the people in a store.
func New(db *storage.DB, recorder *record.Recorder, index *search.Search, used *usage.Usage, asked *strangers.Strangers) *People {
	return &People{db, recorder, index, used, asked}
}

// Person is a person or a bot that has written, or a stranger.
type Person struct {
	SenderID   string    // such as slack:U06STGBF4Q0
	Name       string    // the newest one; empty if none is stored
	Workspaces []string  // in which the person has written
	LastAt     time.Time // of the newest message; zero if it is not known
	// Strangers has the decisions about the person as a stranger, by workspace.
	Strangers []strangers.Stranger

	names []string
}

// errSeveral is the beginning of the error of Find for a name of several people.
var errSeveral = errors.New("several people")

// SeveralError means that several people have a name or an id of a platform.
type SeveralError struct {
	Ref    string
	People []Person
}

// Error lists the people.
func (e *SeveralError) Error() string {
	list := make([]string, len(e.People))
	for i, p := range e.People {
		list[i] = fmt.Sprintf("%s (%s, in %s)", p.SenderID, p.Name, strings.Join(p.Workspaces, " and "))
	}
	return fmt.Sprintf("%s are %q: name one of %s", errSeveral, e.Ref, strings.Join(list, ", "))
}

// id returns the platform's id of a person.
func (p *Person) id() string {
	_, id, _ := strings.Cut(p.SenderID, ":")
	return id
}

// People returns the people with a sender_id, or with a name that contains a text in any case; all of them if it is empty. The last
// active one is first.
func (s *People) People(ctx context.Context, text string) ([]Person, error) {
	all, err := s.all(ctx)
	text = strings.ToLower(strings.TrimSpace(text))
	return slices.DeleteFunc(all, func(p Person) bool {
		return !strings.Contains(strings.ToLower(p.Name), text) && !strings.EqualFold(p.SenderID, text) && !strings.EqualFold(p.id(), text)
	}), err
}

// all returns all people, the last active one first, and behind them the strangers without a stored message.
func (s *People) all(ctx context.Context) (list []Person, err error) {
	rows, err := s.search.People(ctx)
	at := map[string]int{}
	add := func(workspace, sender, name string, last time.Time) *Person {
		i, known := at[sender]
		if !known {
			i, at[sender] = len(list), len(list)
			list = append(list, Person{SenderID: sender, Name: name, LastAt: last})
		}
		p := &list[i]
		if p.names = append(p.names, name); !slices.Contains(p.Workspaces, workspace) {
			p.Workspaces = append(p.Workspaces, workspace)
		}
		return p
	}
	for _, w := range rows {
		add(w.Workspace, w.SenderID, w.Name, w.LastAt)
	}
	if err != nil {
		return nil, err
	}
	asked, err := s.strangers.List(ctx)
	for _, x := range asked {
		p := add(x.Workspace, x.SenderID, x.Name, time.Time{})
		p.Strangers = append(p.Strangers, x)
	}
	return list, err
}

// Find returns the person with a sender_id, or with the platform's id, or else the only one with a name. It fails with a *SeveralError if
// several have it, and with ErrNotFound if no person has it.
func (s *People) Find(ctx context.Context, ref string) (Person, error) {
	all, err := s.all(ctx)
	if err != nil {
		return Person{}, err
	}
	for _, is := range []func(p *Person) bool{
		func(p *Person) bool { return p.SenderID == ref },
		func(p *Person) bool { return p.id() == ref },
		func(p *Person) bool { return strings.EqualFold(strings.TrimSpace(p.Name), strings.TrimSpace(ref)) },
	} {
		var found []Person
		for i := range all {
			if ref != "" && is(&all[i]) {
				found = append(found, all[i])
			}
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return Person{}, &SeveralError{ref, found}
		}
	}
	if !strings.Contains(ref, ":") || strings.HasPrefix(ref, "agent:") || strings.HasPrefix(ref, "system:") {
		return Person{}, storage.ErrNotFound
	}
	// The index of names may not have the person yet, or not any more.
	p := Person{SenderID: ref}
	p.Workspaces, err = messages.WorkspacesOf(ctx, s.db, ref)
	if err == nil && len(p.Workspaces) == 0 {
		err = storage.ErrNotFound
	}
	return p, err
}

// Written is a message of a person, in its place.
type Written struct {
	messages.Message
	Workspace string
	Channel   string
	ThreadID  string // UUID
}

// Written returns the messages of a person after a row, in the order of their rows, with their files; none at the end.
func (s *People) Written(ctx context.Context, p *Person, after int64) (list []Written, err error) {
	return storage.Read(ctx, s.db, func(tx *storage.Txn) []Written {
		for _, o := range messages.WrittenBy(tx, p.SenderID, after) {
			w := Written{Message: o.Message, Workspace: o.Workspace, Channel: o.Channel, ThreadID: o.ThreadID}
			if w.FileCount > 0 {
				w.Attachments = files.Of(tx, w.Row)
			}
			list = append(list, w)
		}
		return list
	})
}
