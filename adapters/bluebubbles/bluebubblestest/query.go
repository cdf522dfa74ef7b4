package bluebubblestest

import (
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
)

// maxLimit bounds the rows of one query.
const maxLimit = 1000

// messageQuery is the body of message/query.
type messageQuery struct {
	ChatGUID string   `json:"chatGuid"`
	With     []string `json:"with"`
	Where    []struct {
		Statement string                 `json:"statement"`
		Args      map[string]json.Number `json:"args"`
	} `json:"where"`
	Sort   string `json:"sort"`
	After  int64  `json:"after"`
	Before int64  `json:"before"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

// rowid returns the ROWID of the condition "message.ROWID > :name"; 0 if there is no
// condition. Only this condition is known.
func (q messageQuery) rowid() (int64, error) {
	var least int64
	for _, where := range q.Where {
		name, known := strings.CutPrefix(where.Statement, "message.ROWID > :")
		value, err := where.Args[name].Int64()
		if !known || err != nil {
			return 0, refuse(http.StatusInternalServerError, "Database Error", "the fake does not know the condition "+where.Statement)
		}
		least = max(least, value)
	}
	return least, nil
}

// query serves message/query. The rows are in the order of their dates, not of their ROWIDs.
func (s *Server) query(r *request) (any, error) {
	q := messageQuery{Limit: 100, Sort: "DESC"}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	rowid, err := q.rowid()
	if err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > maxLimit {
		return nil, refuse(http.StatusBadRequest, "Validation Error", "The limit must be between 1 and 1000.")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.chats[q.ChatGUID]; q.ChatGUID != "" && !known {
		return nil, errNoAnswer // the server forgets to send its answer
	}
	var found []*Message
	for _, m := range s.rows {
		created := m.CreatedAt.UnixMilli()
		if m.ROWID > rowid && (q.ChatGUID == "" || m.Chat == q.ChatGUID) && created >= q.After && (q.Before == 0 || created <= q.Before) {
			found = append(found, m)
		}
	}
	slices.SortStableFunc(found, func(a, b *Message) int { return a.CreatedAt.Compare(b.CreatedAt) })
	if q.Sort == "DESC" {
		slices.Reverse(found)
	}
	p := page{data: []any{}, offset: q.Offset, limit: q.Limit, total: len(found)}
	for _, m := range found[min(q.Offset, len(found)):min(q.Offset+q.Limit, len(found))] {
		p.data = append(p.data, s.row(m, true, contains(q.With, "chat"), contains(q.With, "attachment")))
	}
	return p, nil
}

// contains reports whether a list names a relation, in the singular or the plural.
func contains(with []string, name string) bool {
	return slices.ContainsFunc(with, func(w string) bool { return w == name || w == name+"s" || strings.HasPrefix(w, name+".") })
}

func (s *Server) message(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byGUID[r.PathValue("guid")]
	if m == nil {
		return nil, refuse(http.StatusNotFound, "Database Error", "Message does not exist!")
	}
	with := strings.Split(r.URL.Query().Get("with"), ",")
	return s.row(m, true, contains(with, "chat"), contains(with, "attachment")), nil
}

func (s *Server) chat(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.chats[r.PathValue("guid")]
	if !known {
		return nil, refuse(http.StatusNotFound, "Database Error", "Chat does not exist!")
	}
	return s.chatRow(c), nil
}

func (s *Server) queryChats(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := page{data: []any{}, limit: maxLimit, total: len(s.chats)}
	for _, c := range s.chats {
		p.data = append(p.data, s.chatRow(c))
	}
	return p, nil
}

// queryContacts finds telephone numbers only, as the real server does.
func (s *Server) queryContacts(r *request) (any, error) {
	var q struct {
		Addresses []string `json:"addresses"`
	}
	if err := r.decode(&q); err != nil {
		return nil, err
	}
	return s.contactRows(func(c Contact) bool {
		return slices.Contains(q.Addresses, c.Address) && !strings.Contains(c.Address, "@")
	}), nil
}

func (s *Server) listContacts(*request) (any, error) {
	return s.contactRows(func(Contact) bool { return true }), nil
}

// contactRows returns the contacts for which f holds, as the server sends them.
func (s *Server) contactRows(f func(Contact) bool) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []any{}
	for _, c := range s.contacts {
		if !f(c) {
			continue
		}
		first, last, _ := strings.Cut(c.Name, " ")
		contact := map[string]any{"id": 1, "displayName": c.Name, "firstName": first, "lastName": last, "nickname": "", "phoneNumbers": []any{}, "emails": []any{}}
		kind := "phoneNumbers"
		if strings.Contains(c.Address, "@") {
			kind = "emails"
		}
		contact[kind] = []any{map[string]any{"address": c.Address, "id": 1}}
		found = append(found, contact)
	}
	return found
}

// findFile returns the attachment with the guid in the path.
func (s *Server) findFile(r *request) (a Attachment, content []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	guid := r.PathValue("guid")
	content, known := s.files[guid]
	if !known {
		return a, nil, refuse(http.StatusNotFound, "Database Error", "Attachment does not exist!")
	}
	for _, m := range s.rows {
		if i := slices.IndexFunc(m.Attachments, func(a Attachment) bool { return a.GUID == guid }); i >= 0 {
			a = m.Attachments[i]
		}
	}
	return a, content, nil
}

func (s *Server) attachment(r *request) (any, error) {
	a, content, err := s.findFile(r)
	return map[string]any{"guid": r.PathValue("guid"), "transferName": a.Name, "mimeType": a.MimeType, "totalBytes": len(content)}, err
}

// download serves a file. Without original=true, the real server makes a JPEG of a HEIC picture and an MP3 of a CAF
// recording; here, the result has the first bytes of that form before the content.
func (s *Server) download(r *request) (any, error) {
	found, content, err := s.findFile(r)
	if r.URL.Query().Get("original") != "true" {
		content = append([]byte(converted[strings.ToLower(path.Ext(found.Name))]), content...)
	}
	return file(content), err
}

// converted are the first bytes of the forms that the server makes, by the extensions of the originals.
var converted = map[string]string{".heic": "\xff\xd8\xff\xe0", ".heif": "\xff\xd8\xff\xe0", ".tiff": "\xff\xd8\xff\xe0", ".caf": "ID3\x03"}

// File returns the content of an attachment.
func (s *Server) File(guid string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[guid]
}
