// Package bluebubblestest is a fake BlueBubbles server on a loopback port, with faults on
// demand. It implements the parts that Parley uses: the REST API with its envelope, and
// webhooks.
//
// It stores every message as a row, as Messages does, so that tests and the load tool can
// look at the messages that people see. It has the traps of the real server: every URL
// contains the password, webhooks have no signature, no order and no retry, and a send can take
// effect although its answer is an error. It depends on no test framework.
package bluebubblestest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/adapters/adaptertest/faults"
)

// Password and Address are the server's password and the account's own address, unless Options
// change them.
const (
	Password = "bluebubblestest"
	Address  = "+15555550100"
)

// maxRequest bounds the body of one call, in bytes.
const maxRequest = 32 << 20

// maxPosting bounds the webhooks that are under way at the same time.
const maxPosting = 64

// Options configure a Server. The zero value is a server without the private API and without
// faults.
type Options struct {
	// Listen is the address to listen on; "127.0.0.1:0" if empty.
	Listen string
	// Password is the server's password. Address is the account's own address.
	Password, Address string
	// Version is the server's version, 1.9.9 if empty. SignedOut says that Messages has no account.
	Version   string
	SignedOut bool
	// PrivateAPI says that the server can type, reply, react, edit and mark chats as read.
	PrivateAPI bool
	// BodyOnly says that only attributedBody contains the text of our own messages.
	BodyOnly bool
	// Now is the clock of the rows; the system's if nil.
	Now func() time.Time
	// Plan returns the fault of a call for which Script has none; no fault if nil. It is
	// called concurrently.
	Plan func(Call) Fault
	// Webhooks returns when an event is sent to each webhook: after each of the delays. None
	// loses the event. If it is nil, each event is sent once and at once.
	Webhooks func(event string) []time.Duration
	// OnCall receives every call as soon as it was read, before its fault.
	OnCall func(Call)
	// OnSend receives every message of the API when it takes effect.
	OnSend func(Message)
}

// Call is one request to the REST API.
type Call struct {
	Route string // such as "POST message/text"; a guid in the path is left out
	Path  string // the whole path
	Body  []byte
}

// Server is a running fake. Its methods are safe for concurrent use.
type Server struct {
	options Options
	url     string
	http    *http.Server
	mux     *http.ServeMux
	client  *http.Client
	away    atomic.Bool
	script  faults.Script[Call, Fault]
	posting chan struct{} // holds a value for each webhook under way
	// live ends when the server closes.
	live context.Context
	end  context.CancelFunc

	running sync.WaitGroup // late effects and webhooks
	open    sync.RWMutex   // held while running grows

	mu         sync.Mutex
	rows       []*Message // by ROWID
	byGUID     map[string]*Message
	chats      map[string]Chat
	contacts   []Contact
	files      map[string][]byte // by the attachment's guid
	typing     map[string]bool   // by chat
	read       map[string]int    // how often a chat was marked as read
	sending    map[string]bool   // the temporary guids of sends under way
	webhooks   []Webhook
	webhookID  int
	helperGone bool       // of the private API
	landed     *sync.Cond // signals a new row; its lock is mu
}

// Start listens and serves until Close.
func Start(options Options) (*Server, error) {
	setDefault(&options.Listen, "127.0.0.1:0")
	setDefault(&options.Password, Password)
	setDefault(&options.Address, Address)
	setDefault(&options.Version, "1.9.9")
	if options.SignedOut {
		options.Address = ""
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Webhooks == nil {
		options.Webhooks = func(string) []time.Duration { return []time.Duration{0} }
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, fmt.Errorf("listen for the fake bluebubbles server: %w", err)
	}
	s := &Server{
		options: options, url: "http://" + listener.Addr().String(), mux: http.NewServeMux(),
		client:  &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second},
		posting: make(chan struct{}, maxPosting), byGUID: map[string]*Message{}, chats: map[string]Chat{}, files: map[string][]byte{},
		typing: map[string]bool{}, read: map[string]int{}, sending: map[string]bool{},
	}
	s.live, s.end = context.WithCancel(context.Background())
	s.landed = sync.NewCond(&s.mu)
	s.routes()
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: 10 * time.Second}
	s.running.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}

// URL returns the address of the server for bluebubbles.url.
func (s *Server) URL() string { return s.url }

// SetAway makes the server unreachable: it cuts every call, and sends no webhook.
func (s *Server) SetAway(away bool) { s.away.Store(away) }

// Close cuts every connection, and waits until no goroutine of the server is left. Late
// effects and webhooks do not happen any more.
func (s *Server) Close() error {
	s.open.Lock()
	s.end()
	s.open.Unlock()
	err := s.http.Close()
	s.running.Wait()
	s.client.CloseIdleConnections()
	return err
}

// enter starts f in a goroutine that Close waits for, unless the server is closed.
func (s *Server) enter(f func()) {
	s.open.RLock()
	defer s.open.RUnlock()
	if s.live.Err() == nil {
		s.running.Go(f)
	}
}

// pass waits. It returns false if the server stopped first.
func (s *Server) pass(wait time.Duration) bool {
	if wait <= 0 {
		return s.live.Err() == nil
	}
	select {
	case <-time.After(wait):
		return true
	case <-s.live.Done():
		return false
	}
}

// routes registers the calls of the REST API.
func (s *Server) routes() {
	for route, handle := range map[string]handler{
		"GET ping": s.ping, "GET server/info": s.info,
		"POST message/text": s.sendText, "POST message/attachment": s.sendFile, "POST message/react": s.react,
		"POST message/{guid}/edit": s.edit, "POST message/{guid}/unsend": s.unsend,
		"POST message/query": s.query, "GET message/{guid}": s.message,
		"POST chat/new":   s.newChat,
		"GET chat/{guid}": s.chat, "POST chat/query": s.queryChats,
		"POST chat/{guid}/typing": s.startTyping, "DELETE chat/{guid}/typing": s.stopTyping, "POST chat/{guid}/read": s.markRead,
		"GET attachment/{guid}": s.attachment, "GET attachment/{guid}/download": s.download,
		"POST contact/query": s.queryContacts, "GET contact": s.listContacts,
		"GET webhook": s.listWebhooks, "POST webhook": s.createWebhook, "DELETE webhook/{id}": s.deleteWebhook,
	} {
		method, path, _ := strings.Cut(route, " ")
		name := method + " " + strings.NewReplacer("{guid}/", "", "/{guid}", "", "/{id}", "").Replace(path)
		s.mux.HandleFunc(method+" /api/v1/"+path, func(w http.ResponseWriter, r *http.Request) { s.call(w, r, name, handle) })
	}
}

// request is one call with its decoded body.
type request struct {
	*http.Request
	body []byte
}

// decode decodes a JSON body. An empty body is an empty object.
func (r *request) decode(into any) error {
	if len(bytes.TrimSpace(r.body)) == 0 {
		return nil
	}
	if err := json.Unmarshal(r.body, into); err != nil {
		return refuse(http.StatusBadRequest, "Validation Error", "the body is not JSON")
	}
	return nil
}

// handler makes a call, and returns the data of its answer.
type handler func(r *request) (data any, err error)

// refusal is an error answer.
type refusal struct {
	status        int
	kind, message string
}

// Error returns the message.
func (r *refusal) Error() string { return r.message }

func refuse(status int, kind, message string) *refusal {
	return &refusal{status, kind, message}
}

// file is the content of a file as an answer.
type file []byte

// page is an answer with metadata.
type page struct {
	data                 []any
	offset, limit, total int
}

// serve refuses calls without the password. While the server is away, it cuts every call.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if s.away.Load() {
		panic(http.ErrAbortHandler)
	}
	query := r.URL.Query()
	given := []string{query.Get("password"), query.Get("guid"), query.Get("token")}
	if !slices.Contains(given, s.options.Password) {
		s.write(w, nil, refuse(http.StatusUnauthorized, "Authentication Error", "You are not authorized to access this resource"))
		return
	}
	if _, pattern := s.mux.Handler(r); pattern == "" {
		s.write(w, nil, refuse(http.StatusNotFound, "Not Found", "Endpoint not found"))
		return
	}
	s.mux.ServeHTTP(w, r)
}

// call makes a call unless its fault prevents it.
func (s *Server) call(w http.ResponseWriter, r *http.Request, route string, handle handler) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxRequest))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	call := Call{Route: route, Path: r.URL.Path, Body: body}
	if s.options.OnCall != nil {
		s.options.OnCall(call)
	}
	made := &request{r.WithContext(context.WithoutCancel(r.Context())), body}
	s.answer(w, r, s.fault(call), func() (any, error) { return handle(made) })
}

// errNoAnswer means that a handler has no answer. Then the server's framework writes one.
var errNoAnswer = errors.New("no answer")

// write writes an answer in the server's envelope, or a file.
func (s *Server) write(w http.ResponseWriter, data any, err error) {
	if err == errNoAnswer {
		http.Error(w, "Not Found", http.StatusNotFound)
		return
	}
	if content, ok := data.(file); ok && err == nil {
		_, _ = w.Write(content)
		return
	}
	envelope := map[string]any{"status": http.StatusOK, "message": "Success", "data": data}
	if p, ok := data.(page); ok {
		envelope["data"], envelope["metadata"] = p.data, map[string]any{"offset": p.offset, "limit": p.limit, "total": p.total, "count": len(p.data)}
	}
	status := http.StatusOK
	if err != nil {
		refused, known := err.(*refusal)
		if !known {
			refused = refuse(http.StatusInternalServerError, "Server Error", err.Error())
		}
		status = refused.status
		envelope = map[string]any{"status": status, "message": refused.message, "error": map[string]any{"type": refused.kind, "message": refused.message}}
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(envelope) // an error means that the caller has hung up
}

func (s *Server) ping(*request) (any, error) { return "pong", nil }

// LoseHelper ends or restores the connection of the private API's helper.
func (s *Server) LoseHelper(gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.helperGone = gone
}

func (s *Server) isHelperGone() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.helperGone
}

func (s *Server) info(*request) (any, error) {
	return map[string]any{
		"computer_id": "fake", "os_version": "14.5", "server_version": s.options.Version, "private_api": s.options.PrivateAPI,
		"helper_connected": s.options.PrivateAPI && !s.isHelperGone(), "proxy_service": "dynamic-dns", "detected_icloud": "me@example.org",
		"detected_imessage": s.options.Address, "local_ipv4s": []string{"127.0.0.1"},
	}, nil
}
