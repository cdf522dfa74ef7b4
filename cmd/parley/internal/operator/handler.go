package operator

import (
	"net/http"
	"regexp"
	"slices"

	"parley/adapters/guard"
	"parley/adapters/web/exchange"
	"parley/config"
)

// userHeader is the header with which a client of the socket names its user, for the audit.
const userHeader = "X-Parley-User"

// userForm is the form of a name of a user of the machine.
var userForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,31}$`)

// Local returns the handler of the socket. Its callers need no token, because only the user of the
// daemon can open the socket. They have the rights of an operator.
func (s *Service) Local() http.Handler {
	return s.handler(func(_ http.ResponseWriter, r *http.Request) (Caller, error) {
		return OnSocket(r.Header.Get(userHeader)), nil
	})
}

// Remote returns the handler of a listener. Its callers need the token of an operator. If the
// listener is loopback, the Host must name this machine, because a page of another site could reach
// it otherwise.
func (s *Service) Remote(loopback bool) http.Handler {
	return s.handler(func(w http.ResponseWriter, r *http.Request) (Caller, error) {
		if loopback && !guard.IsLocalHost(r) {
			return Caller{}, Fail(http.StatusForbidden, "foreign-host", "the Host of the request must name this machine")
		}
		by, ok := s.CallerWith(guard.Bearer(r))
		if !ok {
			refusal := s.Guard.Unauthorized(w, r, "no-operator-token")
			w.Header().Set("WWW-Authenticate", "Bearer")
			return Caller{}, Fail(refusal.Status, refusal.Reason, "the request needs the token of an operator: Authorization: Bearer …")
		}
		s.Guard.Admit(r)
		return by, nil
	})
}

// CallerWith returns the operator with a token. It compares with every token, so that the duration
// does not reveal which one matched.
func (s *Service) CallerWith(token string) (by Caller, ok bool) {
	for _, o := range s.Config().Operators {
		if o.Token.Equal(token) {
			by, ok = callerOf(o), true
		}
	}
	return by, ok
}

// Has reports whether the caller would be admitted now: over the socket, or as an operator with the
// same id, role and token.
func (s *Service) Has(c Caller) bool {
	return c.socket || slices.ContainsFunc(s.Config().Operators, func(o config.Operator) bool { return callerOf(o) == c })
}

// handler serves the routes to callers whom identify admits.
func (s *Service) handler(identify func(http.ResponseWriter, *http.Request) (Caller, error)) http.Handler {
	mux := http.NewServeMux()
	for _, route := range Routes() {
		mux.HandleFunc(route.FullPattern(), s.answer(identify, func(c *Call, w http.ResponseWriter) error { return s.serve(route, c, w) }))
	}
	mux.HandleFunc("/", s.answer(identify, func(*Call, http.ResponseWriter) error {
		return Fail(http.StatusNotFound, "no-such-route", "there is no such route or method: see /openapi.json")
	}))
	return mux
}

// answer admits the caller of a request before anything of the request is read.
func (s *Service) answer(identify func(http.ResponseWriter, *http.Request) (Caller, error), serve func(*Call, http.ResponseWriter) error) http.HandlerFunc {
	return exchange.Handler(s.Guard, "there is no such row", func(w http.ResponseWriter, r *http.Request) error {
		by, err := identify(w, r)
		if err != nil {
			return err
		}
		w.Header().Set("Cache-Control", "no-store")
		return serve(&Call{By: by, request: r}, w)
	})
}

// serve answers a request on a route.
func (s *Service) serve(route Route, c *Call, w http.ResponseWriter) (err error) {
	if !c.By.Role.Has(route.Role) {
		return Fail(http.StatusForbidden, "role", "your role is "+string(c.By.Role)+", and this needs the role "+string(route.Role))
	}
	if route.stream != nil {
		return route.stream(s, c, w)
	}
	if c.request.Method == http.MethodPost && c.request.ContentLength != 0 {
		if c.body, err = exchange.ReadJSON(s.Guard, w, c.request, "the body is too long"); err != nil {
			return err
		}
	}
	if len(c.request.Header.Get(keyHeader)) > maxKey {
		return Fail(http.StatusBadRequest, "idempotency-key", "the Idempotency-Key is longer than 200 bytes")
	}
	result, err := route.serve(s, c)
	if err != nil {
		return err
	}
	return exchange.Respond(w, http.StatusOK, result)
}
