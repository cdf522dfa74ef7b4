package operator

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"time"

	"parley/config"
	"parley/ingest/event"
	"parley/ingest/journal/files"
	"parley/ingest/journal/people"
)

var peopleRoutes = []Route{
	{Pattern: "GET people", Role: config.RoleReader, serve: func(s *Service, c *Call) (any, error) {
		if err := c.Known("limit", "q", "before"); err != nil {
			return nil, err
		}
		page, err := c.Page()
		if err != nil {
			return nil, err
		}
		return s.People(c.Context(), c.Query("q"), page)
	}},
	{Pattern: "GET people/{person}", Role: config.RoleReader, serve: func(s *Service, c *Call) (any, error) {
		return s.Person(c.Context(), c.Path("person"))
	}},
	{Pattern: "POST people/{person}/export", Role: config.RoleReader, stream: (*Service).streamPerson},
	{Pattern: "POST people/{person}/forget", Role: config.RoleOperator, serve: func(s *Service, c *Call) (any, error) {
		var n struct {
			Note string `json:"note"`
		}
		if err := c.Bind(&n); err != nil {
			return nil, err
		}
		return s.ForgetPerson(c.Context(), c.Write(n.Note), c.Path("person"))
	}},
}

// Person is a person or a bot that has written, or a stranger about whom approvers were asked.
type Person struct {
	SenderID   string     `json:"sender_id"`
	Name       string     `json:"name"` // the newest one; empty if none is stored
	Workspaces []string   `json:"workspaces"`
	LastAt     *time.Time `json:"last_at"` // of the newest message; nil if it is not known
	Access     []Access   `json:"access,omitempty"`
}

func personOf(p *people.Person) Person {
	made := Person{SenderID: p.SenderID, Name: p.Name, Workspaces: p.Workspaces, Access: accessOf(p)}
	if !p.LastAt.IsZero() {
		made.LastAt = new(p.LastAt.UTC())
	}
	return made
}

// People returns the people with a name that contains a text, or with an id; all if the text is empty. The last active one is first.
func (s *Service) People(ctx context.Context, text string, page Page) (List[Person], error) {
	before, err := page.Row() // the number of people on the pages before
	if err != nil {
		return List[Person]{}, err
	}
	list, err := s.Journal.People.People(ctx, text)
	list = list[min(int(before), len(list)):]
	items, next := make([]Person, min(page.Limit, len(list))), ""
	for i := range items {
		items[i] = personOf(&list[i])
	}
	if len(list) > len(items) {
		next = strconv.Itoa(int(before) + len(items))
	}
	return pageOf(items, next), err
}

// Held is a person with what the store has.
type Held struct {
	Person
	Messages int64 `json:"messages"` // that the person wrote
	Answers  int64 `json:"answers"`
	Files    int64 `json:"files"`
	Naming   int64 `json:"naming"` // further messages of agents and of Parley that name the person
	Others   int64 `json:"others"` // messages of others with a quotation, a reaction or a mention of the person
}

// Person returns a person and counts what a forget would take. The reference is an id, or a name that nobody else has.
func (s *Service) Person(ctx context.Context, ref string) (Held, error) {
	p, err := s.person(ctx, ref)
	if err != nil {
		return Held{}, err
	}
	n, err := s.Journal.People.Count(ctx, &p)
	return Held{Person: personOf(&p), Messages: n.Messages, Answers: n.Answers, Files: n.Files, Naming: n.Naming, Others: n.Changed}, err
}

// person finds a person.
func (s *Service) person(ctx context.Context, ref string) (people.Person, error) {
	p, err := s.Journal.People.Find(ctx, ref)
	if several, ok := errors.AsType[*people.SeveralError](err); ok {
		return p, Fail(http.StatusConflict, "several", several.Error())
	}
	return p, err
}

// Forgotten is the result of a forget. It has no name.
type Forgotten struct {
	SenderID string `json:"sender_id"`
	Messages int64  `json:"messages"` // of the person, and those that they or their runs have caused
	Answers  int64  `json:"answers"`
	Files    int64  `json:"files"`
	Others   int64  `json:"others"` // messages of others that have lost a quotation, a reaction or a name
}

// ForgetPerson erases what a person wrote, what answers it, and the person's name; see people.People. The audit has the person's id.
func (s *Service) ForgetPerson(ctx context.Context, w Write, ref string) (Forgotten, error) {
	p, err := s.person(ctx, ref)
	if err != nil {
		return Forgotten{}, err
	}
	return audited(ctx, s, w, "people.forget", p.SenderID, func(ctx context.Context) (Forgotten, error) {
		n, err := s.Journal.People.Forget(ctx, &p)
		if err == nil {
			err = s.strangersChanged(ctx)
		}
		if err == nil && s.Live == nil { // a daemon does these by itself
			err = s.Journal.Search.FillSearch(ctx)
			if err == nil && s.Files != nil {
				err = s.Journal.Files.RemoveCopies(ctx, s.Files.Remove)
			}
		}
		return Forgotten{p.SenderID, n.Messages, n.Answers, n.Files, n.Changed}, err
	})
}

// exported is a message of a person in an export.
type exported struct {
	ID         string           `json:"id"`
	SentAt     time.Time        `json:"sent_at"`
	EditedAt   *time.Time       `json:"edited_at,omitempty"`
	Workspace  string           `json:"workspace"`
	Channel    string           `json:"channel"`
	ThreadID   string           `json:"thread_id"`
	ThreadSeq  int64            `json:"thread_seq"`
	ExternalID string           `json:"external_id"` // of the platform
	Content    string           `json:"content"`
	Metadata   json.RawMessage  `json:"metadata"`
	Quotes     json.RawMessage  `json:"quotes,omitempty"`
	Reactions  []event.Reaction `json:"reactions,omitempty"`
	Files      []exportedFile   `json:"files,omitempty"`
}

// exportedFile is a file of a message in an export.
type exportedFile struct {
	Name     string `json:"name"`
	MimeType string `json:"mime_type"`
	Size     int64  `json:"size"`
	Words    string `json:"words,omitempty"` // its text, as the platform gave it
	Path     string `json:"path,omitempty"`  // in the archive; empty: there is no copy
}

// ExportPerson writes what a person wrote to w, a ZIP archive: messages.jsonl with a message in each line, and the stored copies of the files.
func (s *Service) ExportPerson(ctx context.Context, by Write, ref string, begin func(p Person), w io.Writer) error {
	p, err := s.person(ctx, ref)
	if err != nil {
		return err
	}
	by.Key = "" // the contents are no stored result
	_, err = audited(ctx, s, by, "people.export", p.SenderID, func(ctx context.Context) (made Forgotten, err error) {
		begin(personOf(&p))
		made.SenderID = p.SenderID
		archive := zip.NewWriter(w)
		lines, err := archive.Create("messages.jsonl")
		if err != nil {
			return made, err
		}
		var copies []files.Attachment
		for after := int64(0); ; {
			list, err := s.Journal.People.Written(ctx, &p, after)
			if err != nil {
				return made, err
			}
			if len(list) == 0 {
				break
			}
			for i := range list {
				m := &list[i]
				after = m.Row
				made.Messages++
				line := exportOf(m)
				for _, a := range m.Attachments {
					f := exportedFile{Name: a.Name, MimeType: a.MimeType, Size: a.Size, Words: a.Words}
					if a.State == files.Stored {
						f.Path = pathOf(&a)
						copies = append(copies, a)
					}
					line.Files = append(line.Files, f)
				}
				if err := json.NewEncoder(lines).Encode(line); err != nil {
					return made, err
				}
			}
		}
		for i := range copies {
			if err := s.exportFile(ctx, archive, &copies[i]); err != nil {
				return made, err
			}
			made.Files++
		}
		return made, archive.Close()
	})
	return err
}

// pathOf returns the path of a file in an export.
func pathOf(a *files.Attachment) string {
	return "files/" + strconv.FormatInt(a.Row, 10) + path.Ext(path.Base(a.Name))
}

func exportOf(m *people.Written) exported {
	line := exported{
		ID: m.UUID, SentAt: m.SentAt.UTC(), Workspace: m.Workspace, Channel: m.Channel, ThreadID: m.ThreadID, ThreadSeq: m.Seq, ExternalID: m.ExternalID,
		Content: m.Content, Metadata: m.Metadata, Reactions: m.Reactions,
	}
	if !m.EditedAt.IsZero() {
		line.EditedAt = new(m.EditedAt.UTC())
	}
	if q := m.Quotes; q.Quoted != nil || len(q.Forwarded) > 0 || len(q.Names) > 0 {
		line.Quotes, _ = json.Marshal(q) // texts and numbers
	}
	return line
}

// exportFile writes the stored copy of a file into an archive.
func (s *Service) exportFile(ctx context.Context, archive *zip.Writer, a *files.Attachment) error {
	content, err := s.Files.Open(ctx, a.Bucket, a.Path)
	if err != nil {
		return err
	}
	defer content.Close()
	entry, err := archive.Create(pathOf(a))
	if err == nil {
		_, err = io.Copy(entry, content)
	}
	return err
}

// streamPerson answers with the archive of a person. If it cannot be written to its end, the connection breaks.
func (s *Service) streamPerson(c *Call, w http.ResponseWriter) error {
	begun := false
	err := s.ExportPerson(c.Context(), c.Write(""), c.Path("person"), func(Person) {
		begun = true
		_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // the caller may be slow
		w.Header().Set("Content-Type", "application/zip")
		w.Header().Set("Content-Disposition", `attachment; filename="person.zip"`)
	}, w)
	if err != nil && begun {
		if c.Context().Err() == nil {
			s.Guard.Fault(err)
		}
		panic(http.ErrAbortHandler)
	}
	return err
}

// People returns the people that a query chooses.
func (c *Client) People(ctx context.Context, query url.Values) (List[Person], error) {
	return Get[List[Person]](ctx, c, "people", query)
}

// Person returns a person with what the store has.
func (c *Client) Person(ctx context.Context, ref string) (Held, error) {
	return Get[Held](ctx, c, "people/"+url.PathEscape(ref), nil)
}

// ForgetPerson asks that a person is forgotten.
func (c *Client) ForgetPerson(ctx context.Context, ref, note string) (Forgotten, error) {
	return Post[Forgotten](ctx, c, "people/"+url.PathEscape(ref)+"/forget", map[string]string{"note": note})
}

// ExportPerson returns the archive with the messages and files of a person. The caller closes it.
func (c *Client) ExportPerson(ctx context.Context, ref string) (io.ReadCloser, error) {
	response, err := c.do(ctx, http.MethodPost, "people/"+url.PathEscape(ref)+"/export", nil, nil)
	if err != nil {
		return nil, err
	}
	return response.Body, nil
}
