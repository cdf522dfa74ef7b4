package console

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/adapters/web/exchange"
	"parley/cmd/parley/internal/operator"
	"parley/ingest/journal/storage"
)

//go:embed templates
var templateFiles embed.FS

// page is one page of the console.
type page struct {
	pattern string // a path of http.ServeMux
	name    string // its template, and its place in the menu
	follows bool   // the page has fragments that change
	form    bool   // it also answers its own form, which changes nothing
	missing string // the words for a row that the store does not have
	// read returns the page's title and the data of its template.
	read func(s *operator.Service, r request) (title string, data any, err error)
}

// patterns returns the patterns of the page for http.ServeMux.
func (p page) patterns() []string {
	if p.form {
		return []string{"GET " + p.pattern, "POST " + p.pattern}
	}
	return []string{"GET " + p.pattern}
}

// request asks for a page. Its address and the role of its caller decide about the page.
type request struct {
	*http.Request
	by operator.Caller
}

// query returns the values of the query that a list passes on to the service.
func (r request) query(name string) string { return r.URL.Query().Get(name) }

// menu lists the pages of the menu in its order. Its groups are activity, open requests, configuration and the two logs.
var menu = [][]link{
	{{Name: "Overview", Path: "/"}, {Name: "Threads", Path: "/threads"}, {Name: "Runs", Path: "/runs"}},
	{
		{Name: "Approvals", Path: "/approvals", count: func(n operator.Needs) int64 { return n.Approvals }}, {Name: "Dead letters", Path: "/dead", count: func(n operator.Needs) int64 { return n.Dead }},
		{Name: "Deliveries", Path: "/deliveries", count: func(n operator.Needs) int64 { return n.UnknownDeliveries + n.FailedDeliveries }},
	},
	{{Name: "Agents", Path: "/agents", count: func(n operator.Needs) int64 { return n.Agents }}, {Name: "Schedules", Path: "/schedules"}, {Name: "Try", Path: "/try"}},
	{{Name: "Log", Path: "/log"}, {Name: "Audit", Path: "/audit"}},
}

// link is an entry of the menu.
type link struct {
	Name, Path string
	Here       bool
	Count      int64 // what waits there; 0 for nothing
	count      func(operator.Needs) int64
}

// frame is the data of the layout.
type frame struct {
	Title  string
	Base   string // the path of the session, below which the links of the page are
	Here   string // the path of the page below Base, with its query
	Menu   [][]link
	Now    string // the name of the menu's entry that leads here; empty for none
	Needs  int64  // the sum of the counts of the menu
	Back   string // the page that lists what the page has not found; empty for none
	Caller operator.Caller
	Follow bool
	Said   *said
	Body   template.HTML // of a template of this package
}

// said is the result of the last operation.
type said struct {
	Words string
	Bad   bool
}

// pages renders all pages.
type pages struct {
	service   *operator.Service
	templates map[string]*template.Template
	byPath    *http.ServeMux
}

// fault tells the operator's log of an error that is ours.
func (p *pages) fault(err error) {
	if exchange.IsFault(err) && p.service.Guard.Fault != nil {
		p.service.Guard.Fault(err)
	}
}

func newPages(service *operator.Service) *pages {
	p := &pages{service: service, templates: map[string]*template.Template{}, byPath: http.NewServeMux()}
	base := template.Must(template.New("").Funcs(functions).ParseFS(templateFiles, "templates/layout.html", "templates/parts.html"))
	for _, one := range pageTable {
		own := template.Must(template.Must(base.Clone()).ParseFS(templateFiles, "templates/"+one.name+".html"))
		p.templates[one.name] = own
		for _, pattern := range one.patterns() {
			p.byPath.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, one) })
		}
	}
	p.templates[nowhere.name] = base
	p.byPath.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, nowhere) })
	p.templates["login"] = template.Must(template.ParseFS(templateFiles, "templates/login.html"))
	return p
}

// inContext is the key of a caller and of the words of an operation in a request's context.
type inContext struct{}

// looking has the caller of a page, the path of the session, and the result of the caller's last operation.
type looking struct {
	by   operator.Caller
	base string
	said *said
}

// nowhere answers an address that no page has.
var nowhere = page{name: "nowhere", missing: "The console has no page at this address.", read: func(*operator.Service, request) (string, any, error) {
	return "", nil, storage.ErrNotFound
}}

// elsewhere is the error of a page whose answer is another page.
type elsewhere struct{ page string }

func (e elsewhere) Error() string { return "the answer is the page " + e.page }

// serve answers with a page. A page that fails says why.
func (p *pages) serve(w http.ResponseWriter, r *http.Request, one page) {
	at, _ := r.Context().Value(inContext{}).(looking)
	title, data, err := one.read(p.service, request{Request: r, by: at.by})
	if other, ok := errors.AsType[elsewhere](err); ok {
		http.Redirect(w, r, strings.TrimSuffix(at.base, "/")+other.page, http.StatusSeeOther)
		return
	}
	f := frame{Title: title, Base: at.base, Here: r.URL.RequestURI(), Caller: at.by, Follow: one.follows && err == nil, Said: at.said}
	needs, _ := p.service.Needs(r.Context()) // a store that does not answer has no counts; the page itself says so
	f.menu(r.URL.Path, needs)
	status := http.StatusOK
	var body bytes.Buffer
	if err == nil {
		err = p.templates[one.name].ExecuteTemplate(&body, "main", data)
	}
	if err != nil {
		code, words := exchange.Explain(err, cmp.Or(one.missing, noRow))
		if p.fault(err); code == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		status, f.Said = code, &said{Words: words, Bad: true}
		f.Title, f.Follow = "This page has no answer", false
		if code == http.StatusNotFound {
			f.Title, f.Back = "Not found", listAt(r.URL.Path)
		}
		body.Reset()
	}
	f.Body = template.HTML(body.String())
	var whole bytes.Buffer
	if err := p.templates[one.name].ExecuteTemplate(&whole, "layout", f); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(whole.Bytes())
}

// noRow are the words for a row that the store does not have, where the page has no better ones.
const noRow = "The store does not have this row. It may have been removed with its age."

// explain returns the status and the words of an error.
func explain(err error) (int, string) { return exchange.Explain(err, noRow) }

// listAt returns the page of the menu with the list to which an address belongs; empty for none.
func listAt(path string) string {
	for _, group := range menu {
		for _, l := range group {
			if l.Path != "/" && strings.HasPrefix(path, l.Path+"/") {
				return l.Path
			}
		}
	}
	return ""
}

// menu sets the menu of a page.
func (f *frame) menu(path string, needs operator.Needs) {
	for _, group := range menu {
		entries := slices.Clone(group)
		for i := range entries {
			l := &entries[i]
			if l.Here = path == l.Path || l.Path != "/" && strings.HasPrefix(path, l.Path+"/"); l.Here {
				f.Now = l.Name
			}
			if l.count != nil {
				l.Count = l.count(needs)
				f.Needs += l.Count
			}
		}
		f.Menu = append(f.Menu, entries)
	}
}

// has reports whether an address is that of a page that changes.
func (p *pages) has(address string) bool {
	r, err := requestOf(context.Background(), address)
	if err != nil {
		return false
	}
	_, pattern := p.byPath.Handler(r)
	for _, one := range pageTable {
		if "GET "+one.pattern == pattern {
			return one.follows
		}
	}
	return false
}

func requestOf(ctx context.Context, address string) (*http.Request, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host != "" || !strings.HasPrefix(u.Path, "/") {
		return nil, fmt.Errorf("%q is no address of a page", address)
	}
	return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
}

// rendering keeps a page that no browser asked for.
type rendering struct {
	header http.Header
	status int
	bytes.Buffer
}

func (r *rendering) Header() http.Header    { return r.header }
func (r *rendering) WriteHeader(status int) { r.status = status }

// render returns a page as the view's operator sees it.
func (p *pages) render(ctx context.Context, v view) ([]byte, error) {
	r, err := requestOf(context.WithValue(ctx, inContext{}, looking{by: v.by}), v.page)
	if err != nil {
		return nil, err
	}
	w := &rendering{header: http.Header{}}
	if p.byPath.ServeHTTP(w, r); w.status != http.StatusOK {
		return nil, errors.New("the page has no answer now")
	}
	return w.Bytes(), nil
}

// write answers with a template that has no layout.
func (p *pages) write(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = p.templates[name].ExecuteTemplate(w, name+".html", data) // the browser has gone
}
