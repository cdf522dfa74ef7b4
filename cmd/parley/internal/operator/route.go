package operator

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"parley/config"
	"parley/ingest/event"
)

// Prefix is the beginning of the paths of all routes.
const Prefix = "/api/v1/operator/"

// Route is one operation of the API.
type Route struct {
	// Pattern is that of http.ServeMux below Prefix, such as "GET dead/{id}".
	Pattern string
	// Role is the least role whose operators may call it.
	Role config.Role
	// serve returns the JSON of the answer.
	serve func(s *Service, c *Call) (any, error)
	// stream answers by itself; nil for a route with serve.
	stream func(s *Service, c *Call, w http.ResponseWriter) error
}

// FullPattern returns the route's pattern with Prefix.
func (r Route) FullPattern() string {
	method, path, _ := strings.Cut(r.Pattern, " ")
	return method + " " + Prefix + path
}

// Routes returns all routes. Each area has its own list.
func Routes() []Route {
	return slices.Concat(
		statusRoutes,
		workspaceRoutes,
		threadRoutes,
		inputRoutes,
		questionRoutes,
		whyRoutes,
		tryRoutes,
		runRoutes,
		searchRoutes,
		peopleRoutes,
		strangerRoutes,
		usageRoutes,
		deadRoutes,
		deliveryRoutes,
		postRoutes,
		scheduleRoutes,
		pauseRoutes,
		reloadRoutes,
		logRoutes,
		stepRoutes,
		auditRoutes,
		consoleRoutes,
		backupRoutes,
	)
}

// Caller is the operator who sends a request.
type Caller struct {
	ID   string
	Role config.Role
	// socket tells that the caller came over the socket, and needs no token.
	socket bool
	// mark is that of the caller's token, id and role, so that sessions and streams end with each of them.
	mark [sha256.Size]byte
}

// OnSocket returns a caller of the socket, with the rights of an operator. user is the user of the machine
// for the audit; any other text is left out.
func OnSocket(user string) Caller {
	by := Caller{ID: config.SocketOperator, Role: config.RoleOperator, socket: true}
	if userForm.MatchString(user) {
		by.ID += ":" + user
	}
	return by
}

// callerOf returns the caller with an operator's token.
func callerOf(o config.Operator) Caller {
	c := Caller{ID: o.ID, Role: o.Role}
	mac := hmac.New(sha256.New, []byte(o.Token.Reveal()))
	_, _ = io.WriteString(mac, o.ID+" "+string(o.Role)) // it never fails
	mac.Sum(c.mark[:0])
	return c
}

// ReadsAll reports whether the caller may read the texts of direct messages.
func (c Caller) ReadsAll() bool { return c.Role.Has(config.RoleReader) }

// Reads reports whether the caller may read the texts of a thread; room says that the thread is in a room. Each page and each search asks
// it.
func (c Caller) Reads(room bool) bool { return room || c.ReadsAll() }

// Call is a request of an operator.
type Call struct {
	By      Caller
	request *http.Request
	body    []byte // of a POST; empty for none
}

// Context returns the context of the request.
func (c *Call) Context() context.Context { return c.request.Context() }

// Path returns a part of the path, by its name in the pattern.
func (c *Call) Path(name string) string { return c.request.PathValue(name) }

// ID returns a part of the path that is the number of a row.
func (c *Call) ID(name string) (int64, error) {
	id, err := strconv.ParseInt(c.Path(name), 10, 64)
	if err != nil || id <= 0 {
		return 0, event.FieldErrors{{Field: name, Message: "must be a number, such as 7"}}
	}
	return id, nil
}

// IDAnd returns a part of the path that is the number of a row, and reads the body with Bind.
func (c *Call) IDAnd(name string, into any) (int64, error) {
	id, err := c.ID(name)
	if err != nil {
		return 0, err
	}
	return id, c.Bind(into)
}

// Query returns a value of the query; empty for none.
func (c *Call) Query(name string) string { return c.request.URL.Query().Get(name) }

// Known returns an error that names a key of the query which is none of names.
func (c *Call) Known(names ...string) error {
	var faults event.FieldErrors
	for key := range c.request.URL.Query() {
		faults.Check(slices.Contains(names, key), key, "is not a parameter here; the parameters are "+strings.Join(names, ", "))
	}
	if len(faults) > 0 {
		return faults
	}
	return nil
}

// Bind reads the body, a JSON object, into a struct with the keys that are allowed. No body is an
// empty object.
func (c *Call) Bind(into any) error {
	if len(bytes.TrimSpace(c.body)) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(c.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return Fail(http.StatusBadRequest, "invalid", "the body must be a JSON object of this operation: "+err.Error())
	}
	return nil
}

// Write returns the caller as the one who asks for a change.
func (c *Call) Write(note string) Write {
	return Write{By: c.By.ID, Key: c.request.Header.Get(keyHeader), Note: note}
}

const (
	// keyHeader is the header of a request's idempotency key.
	keyHeader = "Idempotency-Key"
	// maxKey and maxNote bound an idempotency key and a note, in bytes.
	maxKey, maxNote = 200, 2000
	// maxPage and usualPage are the largest and the default number of rows of a page.
	maxPage, usualPage = 500, 100
)

// Page bounds a list.
type Page struct {
	Before string // Next of the page before; empty for the first one
	Limit  int
}

// Page reads the bounds of a list: before and limit.
func (c *Call) Page() (p Page, err error) {
	p = Page{Before: c.Query("before"), Limit: usualPage}
	if s := c.Query("limit"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 || n > maxPage {
			return p, event.FieldErrors{{Field: "limit", Message: "must be 1 to " + strconv.Itoa(maxPage)}}
		}
		p.Limit = n
	}
	return p, nil
}

// Row returns Before as the number of a row; 0 for the first page.
func (p Page) Row() (int64, error) {
	if p.Before == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(p.Before, 10, 64)
	if err != nil || n <= 0 {
		return 0, event.FieldErrors{{Field: "before", Message: "must be the next of a page"}}
	}
	return n, nil
}

// List is a page of a list.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next"` // the before of the next page; nil if this is the last one
}

// pageOf returns a page with the position of the next one; empty if there is none.
func pageOf[T any](items []T, next string) List[T] {
	list := List[T]{Items: items}
	if items == nil {
		list.Items = []T{}
	}
	if next != "" {
		list.Next = &next
	}
	return list
}

// listOf returns a page. next is the position of its last row; it has no next page unless more is true.
func listOf[T any](items []T, more bool, next func(last T) string) List[T] {
	position := ""
	if more && len(items) > 0 {
		position = next(items[len(items)-1])
	}
	return pageOf(items, position)
}
