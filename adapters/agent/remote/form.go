package remote

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/assembly"
	"parley/assembly/stream"
	"parley/ingest/event"
)

// The values of the setting messages.
const (
	Auto     = "auto"
	Contract = "contract"
	Strict   = "strict"
)

// AutoSwitch is on until the server refuses the setting.
const AutoSwitch adapters.Switch = "auto"

// Pictures is the settings of the agents that send images.
type Pictures struct {
	// Images says whether images are sent.
	Images adapters.Switch `yaml:"images"`
}

// DefaultPictures returns the defaults.
func DefaultPictures() Pictures { return Pictures{Images: AutoSwitch} }

// Check adds the faults of the settings.
func (p Pictures) Check(faults *event.FieldErrors) {
	faults.Check(slices.Contains([]adapters.Switch{AutoSwitch, adapters.On, adapters.Off}, p.Images), "images", "must be auto, true or false")
}

// Forms are the forms that a kind's requests can have.
type Forms struct {
	// Messages is Auto, Contract or Strict; empty for a kind with one form of messages.
	Messages string
	Images   adapters.Switch
	// Parameters are the parameters that a request can do without. If a refusal speaks of several, the
	// first is left out.
	Parameters []Parameter
	// NewImages returns the images of a request.
	NewImages func() *Images
}

// Parameter is a parameter that a request can do without.
type Parameter struct {
	Name    string
	refused *regexp.Regexp // the words of a refusal
}

// NewParameter returns a parameter. The pattern matches its name in the words of a refusal. If other refusals
// also use that name, the words must say too that it is unknown.
func NewParameter(name, pattern string, unmistakable bool) Parameter {
	if !unmistakable {
		pattern = unknown + ".*(?:" + pattern + ")|(?:" + pattern + ").*" + unknown
	}
	return Parameter{name, regexp.MustCompile("(?is)" + pattern)}
}

// Form is the form of one request.
type Form struct {
	Input   assembly.Input // with the messages that fit
	Images  *Images
	Strict  bool // the roles alternate after at most one system message
	NoRole  bool // there is no system role
	without []string
}

// Has reports whether the request may have a parameter.
func (f Form) Has(parameter string) bool { return !slices.Contains(f.without, parameter) }

const (
	// pictureless is the time for which an agent sends no images after its server has refused them.
	pictureless = time.Hour
	// maxForms bounds the requests for one attempt. Each form before the last one was refused.
	maxForms = 12
)

// learnt holds the refused forms of a client until the process ends.
type learnt struct {
	mu      sync.Mutex
	strict  bool
	noRole  bool
	until   time.Time // no images are sent until then
	limit   int       // bytes of the messages' text; 0 for none
	without []string
}

// Learnt says in which form the requests are, if it is not the configured one.
func (c *Client) Learnt() (notes []string) {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.noRole:
		notes = append(notes, "messages are in strict form without a system message")
	case l.strict:
		notes = append(notes, "messages are in strict form")
	}
	if time.Now().Before(l.until) {
		notes = append(notes, "no images until "+l.until.UTC().Format(time.RFC3339))
	}
	if l.limit > 0 {
		notes = append(notes, fmt.Sprintf("at most %d bytes of messages", l.limit))
	}
	for _, name := range l.without {
		notes = append(notes, "no "+name)
	}
	return notes
}

// form returns the form of the next request, whose messages have at most limit bytes; 0 for the learnt bound.
func (c *Client) form(input assembly.Input, forms Forms, limit int) Form {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	f := Form{
		Input: input, Images: NewImages(nil, 0, 0), NoRole: l.noRole, without: slices.Clone(l.without),
		Strict: forms.Messages == Strict || forms.Messages == Auto && l.strict,
	}
	if forms.Images == adapters.On || forms.Images == AutoSwitch && !time.Now().Before(l.until) {
		f.Images = forms.NewImages()
	}
	if limit == 0 {
		limit = l.limit
	}
	if first := firstSaid(input); limit > 0 {
		f.Input.Messages = assembly.Shrink(input.Messages, first, limit)
	}
	return f
}

func firstSaid(input assembly.Input) string {
	if len(input.Said) == 0 {
		return ""
	}
	return input.Said[0].ID
}

// Adapt makes a request with try, in the form that the server is known to accept. If the server refuses
// it for its form, before the run has emitted anything, Adapt makes it again in another form and
// remembers that form. If nothing else explains the refusal of a request with images, Adapt makes it
// once without them. A refusal of every form fails for good.
func (c *Client) Adapt(input assembly.Input, forms Forms, emit func(stream.Message) error, try func(Form, func(stream.Message) error) error) error {
	limit, bare := 0, false
	for n := 1; ; n++ {
		f, begun := c.form(input, forms, limit), false
		if bare {
			f.Images = NewImages(nil, 0, 0)
		}
		err := try(f, func(m stream.Message) error {
			begun = true
			return emit(m)
		})
		fault, ok := errors.AsType[*Error](err)
		if err == nil || begun {
			c.keep(limit, bare)
		}
		if !ok || begun || n == maxForms || !fault.isRefusal() {
			return err
		}
		cause, again := refusalOf(fault, forms, f), false
		if cause == tooLong {
			limit, again = shorter(fault, input, f)
		} else {
			again = c.learn(cause, fault, forms, f)
		}
		switch {
		case again:
		case forms.Images == AutoSwitch && f.Images.Any() && !fault.mayPass(forms):
			bare = true
		case cause == noRefusal:
			return err
		default:
			return final(fault, cause, input)
		}
	}
}

// keep remembers a bound with which a request has succeeded, and that it has succeeded without images alone.
func (c *Client) keep(limit int, bare bool) {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	if limit > 0 {
		l.limit = limit
	}
	if bare {
		l.until = time.Now().Add(pictureless)
	}
}

// learn remembers a refusal. It reports whether there is another form.
func (c *Client) learn(cause refusal, fault *Error, forms Forms, f Form) bool {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case cause == badParameter:
		if name := namedParameter(fault.said, forms, f); !slices.Contains(l.without, name) {
			l.without = append(l.without, name)
		}
	case cause == badImages && forms.Images == AutoSwitch:
		l.until = time.Now().Add(pictureless)
	case cause == badRoles && forms.Messages == Auto && !f.Strict:
		l.strict, l.noRole = true, l.noRole || lacksSystem(fault.said) || areStrict(f.Input.Messages)
	case cause == badRoles && f.Strict && !f.NoRole:
		l.noRole = true
	default:
		return false
	}
	return true
}

// final returns the error of a refusal that no other form avoids.
func final(fault *Error, cause refusal, input assembly.Input) error {
	last := *fault
	last.Permanent = true
	if cause == tooLong {
		last.sentence = "Sorry, this is too long for the model that I ask. Please send it in smaller parts."
		if len(assembly.Shrink(input.Messages, firstSaid(input), 0)) < len(input.Messages) {
			last.sentence += " /new starts afresh, without the messages before it."
		}
	}
	return &last
}

// shorter returns the bound for the next request after one that was too long: half of it, or less if the
// server tells by how much it was too long. It reports whether fewer messages would be sent.
func shorter(fault *Error, input assembly.Input, f Form) (limit int, again bool) {
	sent := assembly.Size(f.Input.Messages)
	limit = sent / 2
	if limited, asked := tokens(fault.said); asked > limited {
		limit = min(limit, max(sent/16, int(float64(sent)*float64(limited)/float64(asked)*0.8)))
	}
	limit = max(limit, 1)
	return limit, assembly.Size(assembly.Shrink(input.Messages, firstSaid(input), limit)) < sent
}

// The numbers of tokens in the words of servers. Other numbers are codes, dates and names of models.
var (
	askedTokens = regexp.MustCompile(`(?i)(\d{3,9}) (?:\w+ )?tokens|n_keep\W{0,3}(\d{3,9})`)
	mostTokens  = regexp.MustCompile(`(?i)(?:length|size|window|limit)(?: is| of)?(?: only)?:? \(?(\d{3,9}) tokens|n_ctx\W{0,3}(\d{3,9})|> ?(\d{3,9})|(\d{3,9}) (?:tokens? )?maximum`)
)

// tokens returns the server's limit and the number of tokens that were too many; 0 for an unknown one.
func tokens(words string) (limit, asked int) {
	numbers := func(pattern *regexp.Regexp) (found []int) {
		for _, match := range pattern.FindAllStringSubmatch(words, -1) {
			n, _ := strconv.Atoi(strings.Join(match[1:], "")) // one group has few digits, the others are empty
			found = append(found, n)
		}
		return found
	}
	limits, all := numbers(mostTokens), numbers(askedTokens)
	if len(limits) == 0 || len(all) == 0 {
		return 0, 0
	}
	return slices.Min(limits), slices.Max(all)
}

// refusal is the cause for which a server refuses a request's form.
type refusal int

const (
	noRefusal refusal = iota
	badParameter
	tooLong
	badImages
	badRoles
)

// unknown matches the words of a refusal of a parameter.
const unknown = `(?:unknown|unrecogni[sz]ed|unsupported|(?:not|n't) (?:supported|permitted|allowed|enabled|recogni[sz]ed|support)|no endpoints found|unexpected|extra_forbidden|additional properties|(?:in|not (?:a )?)valid (?:param|argument|field)|requires --)`

// The words of servers; TestRefusals names them.
var (
	longWords    = regexp.MustCompile(`(?i)context_length_exceeded|context[ _](?:length|size|window|limit|overflow)|exceed_context_size|(?:prompt|input|request|message|string)s?(?: is| are)? too (?:long|large)|request_too_large|too many (?:input )?tokens|maximum (?:context|prompt|model|number of tokens|input)|input token count|input length|model token limit|reduce the length|tokens to keep|\bn_ctx\b|\bmax_(?:seq|model)_len|\bmax_new_tokens|prompt\W[^.]{0,60}(?:too long|exceed|(?:long|great)er than)`)
	imageWords   = regexp.MustCompile(`(?i)image|picture|vision|visual|multi-?modal|mmproj|must be a string|valid string|expected a string|type \W?string|content (?:type|part)`)
	roleWords    = regexp.MustCompile(`(?i)\broles?\b|alternat|interleav|(?:successive|consecutive) |system (?:message|prompt|instruction)|(?:first|last) message|developer instruction|chat.?template|jinja|['"` + "`" + `]system['"` + "`" + `]`)
	toolWords    = regexp.MustCompile(`(?i)\btools?\b|tool_calls?|function`)
	passingWords = regexp.MustCompile(`(?i)internal (?:server )?error|had an error|overload|busy|unavailable|try again|retry|temporar|time(?:d )?[ -]?out`)
	orderWords   = regexp.MustCompile(`(?i)alternat|interleav|successive|consecutive|beginning|\b(?:first|last|after|before|start|end with|only one|more than one|multiple)\b`)
	noSystem     = regexp.MustCompile(`(?i)system (?:role|message|prompt)s?(?: is| are)? not supported|only user and assistant|first message (?:must|should)[^.]*user`)
)

// lacksSystem reports whether a refusal means that there is no system role: its words are about roles and not
// about their order, or they say so in the source of a template that llama.cpp shows with them.
func lacksSystem(words string) bool {
	return noSystem.MatchString(words) || roleWords.MatchString(words) && !orderWords.MatchString(words)
}

// areStrict reports whether the strict form of messages is that of the contract: only a system prompt can be
// refused then.
func areStrict(messages []assembly.Message) bool {
	for i, m := range messages {
		if m.Role != []assembly.Role{assembly.RoleUser, assembly.RoleAssistant}[i%2] || len(m.Calls) > 0 {
			return false
		}
	}
	return true
}

// isRefusal reports whether the server may have refused the form of the request. A status of 0 with words is
// an error in a stream.
func (e *Error) isRefusal() bool {
	return e.Status == 0 && e.said != "" || slices.Contains([]int{400, 404, 413, 415, 422, 500}, e.Status)
}

// mayPass reports whether an unexplained refusal has nothing to do with the request's images: the provider
// declines the words, or the server had a fault of its own. Only a server of models has the status 500, or an
// error in its stream, for a form that it cannot take.
func (e *Error) mayPass(forms Forms) bool {
	failed := e.Status == 0 || e.Status == 500
	return e.sentence != "" || failed && (forms.Messages == "" || passingWords.MatchString(e.said))
}

// refusalOf returns why the server has refused a request.
func refusalOf(fault *Error, forms Forms, f Form) refusal {
	switch words := fault.said; {
	case namedParameter(words, forms, f) != "":
		return badParameter
	case longWords.MatchString(words), fault.Status == 413 && !f.Images.Any():
		return tooLong
	case f.Images.Any() && (imageWords.MatchString(words) || fault.Status == 413):
		return badImages
	case forms.Messages != "" && (roleWords.MatchString(words) || !f.Strict && UsesTools(f.Input.Messages) && toolWords.MatchString(words)):
		return badRoles
	}
	return noRefusal
}

// namedParameter returns the parameter that a refusal names; empty for none.
func namedParameter(words string, forms Forms, f Form) string {
	for _, p := range forms.Parameters {
		if f.Has(p.Name) && p.refused.MatchString(words) {
			return p.Name
		}
	}
	return ""
}
