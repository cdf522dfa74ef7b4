package daemon_test

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley/adapters/web"
)

// description is the document at /openapi.json, as far as the tests read it.
type description struct {
	Openapi    string
	Security   []map[string][]string // of operations without their own
	Paths      map[string]map[string]json.RawMessage
	Components struct {
		Schemas    map[string]*schema
		Responses  map[string]*reaction
		Parameters map[string]json.RawMessage
		// SecuritySchemes have no empty member. A comma in a YAML text without quotes makes one.
		SecuritySchemes map[string]map[string]string
	}
	routes *http.ServeMux // finds the path of a request
}

// operation is one method of a path.
type operation struct {
	Summary     string
	Security    []map[string][]string // nil for a bearer token
	RequestBody *struct{ Content map[string]media }
	Responses   map[string]*reaction
}

// reaction is the description of an answer.
type reaction struct {
	Ref         string `json:"$ref"`
	Description string
	Content     map[string]media
}

// media is the description of a body.
type media struct {
	Schema  *schema
	Example any
}

// described reads the document once.
var described = sync.OnceValues(func() (*description, error) {
	out := httptest.NewRecorder()
	web.OpenAPI(out, nil)
	d := &description{routes: http.NewServeMux()}
	if err := json.Unmarshal(out.Body.Bytes(), d); err != nil {
		return nil, err
	}
	for _, pattern := range d.patterns() {
		d.routes.HandleFunc(pattern, http.NotFound)
	}
	return d, nil
})

// readDescription returns the document.
func readDescription(t *testing.T) *description {
	t.Helper()
	d, err := described()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// patterns returns the described operations as patterns of http.ServeMux, in order.
func (d *description) patterns() (patterns []string) {
	for path, item := range d.Paths {
		for method := range item {
			if method != "parameters" {
				if path == "/" { // of the document; for ServeMux it is every path
					path = "/{$}"
				}
				patterns = append(patterns, strings.ToUpper(method)+" "+strings.Replace(path, "/{path}", "/{path...}", 1))
			}
		}
	}
	slices.Sort(patterns)
	return patterns
}

// operation returns the description of a pattern.
func (d *description) operation(t *testing.T, pattern string) (o operation) {
	t.Helper()
	method, path, _ := strings.Cut(strings.NewReplacer("/{path...}", "/{path}", "/{$}", "/").Replace(pattern), " ")
	if err := json.Unmarshal(d.Paths[path][strings.ToLower(method)], &o); err != nil {
		t.Fatalf("%s: %v", pattern, err)
	}
	return o
}

// answers returns the description of the answers with a status; nil for none.
func (d *description) answers(o operation, status int) *reaction {
	r := o.Responses[strconv.Itoa(status)]
	if r == nil {
		r = o.Responses["default"]
	}
	if r != nil && r.Ref != "" {
		r = d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
	}
	return r
}

// check compares an answer of the daemon with the description of its route. An unknown path or
// method has none.
func (d *description) check(t *testing.T, request *http.Request, a answer) {
	t.Helper()
	_, pattern := d.routes.Handler(request)
	if !strings.Contains(pattern, " ") || a.status == http.StatusMethodNotAllowed || request.Method == http.MethodHead {
		return
	}
	described := d.answers(d.operation(t, pattern), a.status)
	switch {
	case described == nil:
		t.Errorf("%s: the status %d is not described: %s", pattern, a.status, a.body)
		return
	case a.body == "":
		return
	}
	kind, _, _ := mime.ParseMediaType(a.header.Get("Content-Type"))
	content, ok := described.Content[kind]
	if !ok {
		content, ok = described.Content["*/*"]
	}
	if !ok {
		t.Errorf("%s: an answer %d of type %q is not described: %s", pattern, a.status, kind, a.body)
		return
	}
	if kind != "application/json" || content.Schema == nil {
		return
	}
	var value any
	if err := json.Unmarshal([]byte(a.body), &value); err != nil {
		t.Errorf("%s: %v in %s", pattern, err, a.body)
	}
	for _, fault := range d.faults(content.Schema, value, "the body") {
		t.Errorf("%s: %s in %d %s", pattern, fault, a.status, a.body)
	}
}

// TestOpenAPIDescribesEveryRoute compares the document with the routes of the daemon, both ways.
func TestOpenAPIDescribesEveryRoute(t *testing.T) {
	t.Parallel()
	h := open(t, plan{})
	patterns := h.daemon.Patterns()
	slices.Sort(patterns)
	d := readDescription(t)
	same(t, d.patterns(), patterns)
	if got := h.get("/openapi.json"); d.Openapi != "3.1.0" || got.status != http.StatusOK || !strings.Contains(got.body, `"openapi":"3.1.0"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestOpenAPIDescribesTickets compares the operations that take a ticket with the routes that do.
func TestOpenAPIDescribesTickets(t *testing.T) {
	t.Parallel()
	d, takes := readDescription(t), map[string]bool{}
	for _, route := range (web.API{}).Routes() {
		takes[route.Pattern] = strings.HasPrefix(route.Pattern, http.MethodGet)
	}
	for _, pattern := range d.patterns() {
		described := slices.ContainsFunc(d.operation(t, pattern).Security, func(s map[string][]string) bool { return s["ticket"] != nil })
		if described != takes[pattern] {
			t.Errorf("%s: a ticket is described: %v", pattern, described)
		}
	}
	same(t, d.Security, []map[string][]string{{"token": {}}})
	for name, scheme := range d.Components.SecuritySchemes {
		for member, value := range scheme {
			if value == "" {
				t.Errorf("%s: %q is empty", name, member)
			}
		}
	}
}

// TestOpenAPIExamples compares each example with its schema. Each operation must have a summary.
func TestOpenAPIExamples(t *testing.T) {
	t.Parallel()
	d, examples := readDescription(t), 0
	for _, pattern := range d.patterns() {
		o := d.operation(t, pattern)
		bodies := map[string]map[string]media{}
		if o.RequestBody != nil {
			bodies["the request"] = o.RequestBody.Content
		}
		for status, r := range o.Responses {
			if r.Ref != "" {
				r = d.Components.Responses[strings.TrimPrefix(r.Ref, "#/components/responses/")]
			}
			if r == nil || r.Description == "" {
				t.Fatalf("%s: the answer %s has no description", pattern, status)
			}
			bodies[status] = r.Content
		}
		for name, content := range bodies {
			for _, m := range content {
				if m.Example != nil {
					examples++
					for _, fault := range d.faults(m.Schema, m.Example, name) {
						t.Errorf("%s: the example of %s", pattern, fault)
					}
				}
			}
		}
		if o.Summary == "" || len(o.Responses) == 0 {
			t.Errorf("%s has no summary or no answers", pattern)
		}
	}
	if examples < 10 {
		t.Errorf("the document has %d examples", examples)
	}
}

// TestSchemaCheck checks that the check finds faults of each kind.
func TestSchemaCheck(t *testing.T) {
	t.Parallel()
	d := readDescription(t)
	for body, want := range map[string]int{
		`{"id":"6ba7b810-9dad-41d1-80b4-00c04fd430c8","mode":"open","created_at":"2026-09-21T12:00:00Z"}`: 0,
		`{"id":"6BA7B810","mode":"closed","created_at":7,"title":"x"}`:                                    4,
		`{"mode":"open"}`: 2,
		`[]`:              1,
	} {
		var value any
		if err := json.Unmarshal([]byte(body), &value); err != nil {
			t.Fatal(err)
		}
		if got := d.faults(d.Components.Schemas["Thread"], value, "a thread"); len(got) != want {
			t.Errorf("%s has the faults %q, want %d", body, got, want)
		}
	}
}
