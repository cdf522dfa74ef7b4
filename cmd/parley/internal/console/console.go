package console

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"parley/adapters/guard"
	"parley/cmd/parley/internal/operator"
)

//go:embed static
var static embed.FS

// Options are the parts of a Console.
type Options struct {
	Service *operator.Service
	// PublicURL returns the address under which people reach the console through a proxy; "" if
	// there is none.
	PublicURL func() string
	// Guard bounds the guesses of a token.
	Guard *guard.Guard
	Now   func() time.Time
}

// Console serves the pages.
type Console struct {
	Options
	doors *doors
	live  *live
	pages *pages
}

// New returns a console. Run must run while it serves.
func New(o Options) *Console {
	c := &Console{Options: o, doors: newDoors(o.Now, o.Service.Has), pages: newPages(o.Service)}
	c.live = newLive(c.pages.render)
	return c
}

// Close ends the streams of all tabs.
func (c *Console) Close() { c.live.close() }

// Run renders the pages that people follow, until ctx ends.
func (c *Console) Run(ctx context.Context) { c.live.run(ctx) }

// Ticket returns a ticket that admits an operator once within a minute.
func (c *Console) Ticket(by operator.Caller) string { return c.doors.issue(by) }

// policy is the Content-Security-Policy of each page: it loads files of this server alone, and has no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types console"

// maxForm bounds the body of a form. A payload to try may be as large as a platform's.
const maxForm = 1 << 20

// Handler returns the console's routes. local tells that the listener is on a loopback address, so
// that only Hosts of this machine are right.
func (c *Console) Handler(local bool) http.Handler {
	mux := http.NewServeMux()
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(files)))
	mux.HandleFunc("GET /login", c.showLogin)
	mux.HandleFunc("POST /login", c.login)
	mux.HandleFunc("/", outside)
	rooms := http.NewServeMux()
	rooms.HandleFunc("POST /logout", c.inside(c.logout))
	rooms.HandleFunc("GET /events", c.inside(c.events))
	for _, p := range pageTable {
		for _, pattern := range p.patterns() {
			rooms.HandleFunc(pattern, c.inside(c.show))
		}
	}
	rooms.HandleFunc("GET /", c.inside(c.show))
	for _, o := range operations {
		rooms.HandleFunc("POST "+o.pattern, c.inside(c.operate(o)))
	}
	mux.HandleFunc(sessions+"{place}/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix(baseOf(r.PathValue("place")), rooms).ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), placeKey{}, r.PathValue("place"))))
	})
	protected := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if local && !guard.IsLocalHost(r) && r.Host != c.publicHost() {
			c.Guard.Refuse(w, &guard.Refusal{Status: http.StatusForbidden, Reason: "foreign-host"})
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		protected.ServeHTTP(w, r)
	})
}

func (c *Console) publicHost() string {
	u, err := url.Parse(c.PublicURL())
	if err != nil {
		return ""
	}
	return u.Host
}

// secure reports whether a request came through the proxy that speaks https.
func (c *Console) secure(r *http.Request) bool {
	u, err := url.Parse(c.PublicURL())
	return err == nil && u.Scheme == "https" && u.Host == r.Host
}

// sessions begins the paths of everything that needs a session. The place of the session follows: a second
// secret beside that of the cookie. A browser sends the cookie of a host to all ports of the host, so another
// program of the machine may get the cookie; it does not learn the place, and without the place it reads
// nothing.
const sessions = "/at/"

// baseOf returns the path below which the pages of a session are.
func baseOf(place string) string { return sessions + place }

// placeKey is the key of a session's place in a request's context.
type placeKey struct{}

// cookie returns the session's cookie. A browser accepts the prefix over https only, and only for all paths.
func (c *Console) cookie(r *http.Request, of entry) *http.Cookie {
	cookie := &http.Cookie{Name: "parley", Value: of.secret, Path: baseOf(of.place) + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode}
	if c.secure(r) {
		cookie.Name, cookie.Path, cookie.Secure = "__Host-parley", "/", true
	}
	return cookie
}

// call is one request of an operator who is logged in.
type call struct {
	*http.Request
	caller operator.Caller
	entry  entry // of the session
}

// base returns the path of the call's session.
func (r call) base() string { return baseOf(r.entry.place) }

// inside admits a request that has the cookie and the place of a session, and sends others to the login.
func (c *Console) inside(serve func(w http.ResponseWriter, r call)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		at := entry{}
		at.place, _ = r.Context().Value(placeKey{}).(string)
		if cookie, err := r.Cookie(c.cookie(r, at).Name); err == nil {
			at.secret = cookie.Value
			if caller, ok := c.doors.use(at); ok {
				c.Guard.Admit(r)
				serve(w, call{Request: r, caller: caller, entry: at})
				return
			}
		}
		outside(w, r)
	}
}

// outside answers a request without a session.
func outside(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Accept") == "text/event-stream" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// show answers with a page.
func (c *Console) show(w http.ResponseWriter, r call) {
	at := looking{by: r.caller, base: r.base() + "/", said: c.doors.hear(r.entry)}
	c.pages.byPath.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), inContext{}, at)))
}

func (c *Console) showLogin(w http.ResponseWriter, r *http.Request) {
	c.pages.write(w, http.StatusOK, "login", c.loginPage(false))
}

// loginPage is the data of the login. Wrong tells that the last token or ticket was, and Tokens that operators have tokens.
type loginPage struct{ Wrong, Tokens bool }

func (c *Console) loginPage(wrong bool) loginPage {
	return loginPage{Wrong: wrong, Tokens: len(c.Service.Config().Operators) > 0}
}

// login begins a session for a ticket or an operator's token.
func (c *Console) login(w http.ResponseWriter, r *http.Request) {
	caller, ok := c.doors.redeem(r.PostFormValue("ticket"))
	if token := r.PostFormValue("token"); token != "" {
		caller, ok = c.Service.CallerWith(token)
	}
	if !ok {
		refusal := c.Guard.Unauthorized(w, r, "no-operator")
		if c.Guard.Rejected(refusal.Reason); refusal.Status == http.StatusTooManyRequests {
			w.WriteHeader(refusal.Status)
			return
		}
		c.pages.write(w, refusal.Status, "login", c.loginPage(true))
		return
	}
	c.Guard.Admit(r)
	at := c.doors.open(caller)
	http.SetCookie(w, c.cookie(r, at))
	http.Redirect(w, r, baseOf(at.place)+"/", http.StatusSeeOther)
}

func (c *Console) logout(w http.ResponseWriter, r call) {
	c.doors.close(r.entry)
	cookie := c.cookie(r.Request, entry{place: r.entry.place})
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	http.Redirect(w, r.Request, "/login", http.StatusSeeOther)
}

// beat is the time between two comments on a stream, so that a proxy keeps the stream open and a
// session that has ended ends its stream.
const beat = 20 * time.Second

// events streams the changes of a page.
func (c *Console) events(w http.ResponseWriter, r call) {
	v := view{page: r.FormValue("page"), by: r.caller}
	if !c.pages.has(v.page) {
		http.NotFound(w, r.Request)
		return
	}
	tab := c.live.join(v)
	if tab == nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	defer c.live.leave(v, tab)
	stream := http.NewResponseController(w)
	_ = stream.SetWriteDeadline(time.Time{}) // the listener's own bound is for pages
	w.Header().Set("Content-Type", "text/event-stream")
	if err := send(w, stream, ": the page is followed\n\n"); err != nil {
		return
	}
	beats := time.NewTicker(beat)
	defer beats.Stop()
	for {
		var err error
		select {
		case <-r.Context().Done():
			return
		case <-beats.C:
			if !c.doors.isOpen(r.entry) {
				return
			}
			err = send(w, stream, ":\n\n")
		case told, open := <-tab:
			if !open && c.live.isClosed() {
				return
			}
			if !open {
				_ = send(w, stream, "event: reload\ndata: \n\n")
				return
			}
			err = send(w, stream, "event: "+told.event+"\ndata: "+string(told.data)+"\n\n")
		}
		if err != nil {
			return
		}
	}
}

// sendTime bounds the write of one event to a slow reader.
const sendTime = 10 * time.Second

func send(w http.ResponseWriter, stream *http.ResponseController, words string) error {
	_ = stream.SetWriteDeadline(time.Now().Add(sendTime))
	_, err := w.Write([]byte(words))
	return errors.Join(err, stream.Flush())
}
