package remote

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/adapters"
	"parley/adapters/agent"
	"parley/assembly"
	"parley/assembly/runinput"
	"parley/assembly/turn"
	"parley/ingest/event"
	"parley/ingest/stream"
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

// Documents is the settings of the agents that send documents.
type Documents struct {
	// Types are the documents that the model takes in the API's own form: pdf.
	Types []string `yaml:"documents"`
	// MaxFileBytes bounds a document. The model gets only the name of a larger one.
	MaxFileBytes int64 `yaml:"max_file_bytes"`
}

// DefaultDocuments returns the defaults.
func DefaultDocuments() Documents { return Documents{MaxFileBytes: 20 << 20} }

// PDF is the type of a document.
const PDF = "application/pdf"

// Check adds the faults of the settings.
func (d Documents) Check(faults *event.FieldErrors) {
	faults.Check(!slices.ContainsFunc(d.Types, func(t string) bool { return t != "pdf" }), "documents", "must be [pdf], or be left out")
	faults.Check(d.MaxFileBytes > 0, "max_file_bytes", "must be more than 0")
}

// TakesDocuments reports whether PDFs are sent.
func (d Documents) TakesDocuments() bool { return len(d.Types) > 0 }

// NewImages returns the images and documents of a request; see NewImages.
func (d Documents) NewImages(files agent.Files, limit int64) *Images {
	i := NewImages(files, limit, DefaultImagesBytes)
	if d.TakesDocuments() {
		i.limits[PDF], i.room = d.MaxFileBytes, max(i.room, d.MaxFileBytes)
	}
	return i
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
	leftOut map[string]bool // the tools that the request lacks, by their keys
	offered *[]Offered
}

// Offer takes the refused tools out of those of the request, and notes the others.
func (f Form) Offer(t *Tools) {
	isLeft := func(tool runinput.Tool) bool { return f.leftOut[toolKey(tool)] }
	t.ours = slices.DeleteFunc(slices.Clone(t.ours), isLeft)
	t.clients = slices.DeleteFunc(slices.Clone(t.clients), isLeft)
	for _, function := range t.Functions() {
		*f.offered = append(*f.offered, Offered{function.of, function.Name})
	}
}

// Offered is a tool of a request, with its name there.
type Offered struct {
	runinput.Tool
	name string
}

// Has reports whether the request may have a parameter.
func (f Form) Has(parameter string) bool { return !slices.Contains(f.without, parameter) }

const (
	// pictureless is the time for which an agent sends no images after its server has said that the model takes none. A
	// picture or a tool that it has refused is left out for as long.
	pictureless = time.Hour
	// maxRefused bounds the pictures and the tools that are remembered, each. The oldest are forgotten.
	maxRefused = 1000
	// maxAlone bounds the pictures of a request that are left out one by one, to find the refused one.
	maxAlone = 4
	// formAge is the time for which the form of the requests is remembered after a refusal, and faultAge that after a fault
	// of the server whose words were about the form.
	formAge, faultAge = 24 * time.Hour, time.Hour
	// maxForms bounds the requests for one attempt. Each form before the last one was refused.
	maxForms = 12
)

// learnt holds the refused forms of a client until their time is over, or the process ends.
type learnt struct {
	mu     sync.Mutex
	strict bool
	noRole bool
	until  time.Time // no images are sent until then
	// pictures and tools are those that the server has refused: no other request is changed by them.
	pictures, tools refused
	limit           int // bytes of the messages' text; 0 for none
	without         []string
	// since is the time of the first refusal that strict, noRole, limit and without are learnt from. They are forgotten at
	// forget.
	since, forget time.Time
}

// refused are things that a server has refused, by their keys, with the time until which they are left out, and
// what people call them.
type refused map[string]struct {
	until time.Time
	name  string
}

// add adds a thing.
func (r *refused) add(key, name string, now time.Time) {
	if *r == nil {
		*r = refused{}
	}
	if len(*r) >= maxRefused {
		oldest := ""
		for k, v := range *r {
			if oldest == "" || v.until.Before((*r)[oldest].until) {
				oldest = k
			}
		}
		delete(*r, oldest)
	}
	(*r)[key] = struct {
		until time.Time
		name  string
	}{now.Add(pictureless), name}
}

// keys returns the keys of the things that are left out now.
func (r refused) keys(now time.Time) map[string]bool {
	keys := map[string]bool{}
	for key, thing := range r {
		if now.Before(thing.until) {
			keys[key] = true
		}
	}
	return keys
}

// pictureKey and toolKey are the keys of refused things. A tool with another schema is another one.
func pictureKey(file assembly.File) string { return file.Bucket + "/" + file.Path }

func toolKey(t runinput.Tool) string {
	return fmt.Sprintf("%s %x", t.Name, sha256.Sum256(t.Parameters))
}

// toolName names a tool for people.
func toolName(t runinput.Tool) string {
	if t.Server == "" {
		return Plain(t.Name, 120)
	}
	return Plain(t.Name, 120) + " of " + t.Server
}

// note notes that a form is learnt for a time.
func (l *learnt) note(age time.Duration) {
	now := time.Now()
	if l.since.IsZero() {
		l.since, l.forget = now, now.Add(age)
	}
	if forget := now.Add(age); forget.Before(l.forget) {
		l.forget = forget
	}
}

// grow forgets the forms after their time, because servers change too: one request more shows them again.
func (l *learnt) grow() {
	if !l.since.IsZero() && !time.Now().Before(l.forget) {
		l.strict, l.noRole, l.limit, l.without = false, false, 0, nil
		l.since, l.forget = time.Time{}, time.Time{}
	}
}

// Learnt says in which form the requests are, if it is not the configured one.
func (c *Client) Learnt() (notes []string) {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow()
	at := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	note := func(text string) {
		notes = append(notes, text+" (since "+at(l.since)+", until "+at(l.forget)+")")
	}
	switch {
	case l.noRole:
		note("messages are in strict form without a system message")
	case l.strict:
		note("messages are in strict form")
	}
	if time.Now().Before(l.until) {
		notes = append(notes, "no images until "+l.until.UTC().Format(time.RFC3339))
	}
	if l.limit > 0 {
		note(fmt.Sprintf("at most %d bytes of messages", l.limit))
	}
	for _, name := range l.without {
		note("no " + name)
	}
	for _, key := range slices.Sorted(maps.Keys(l.tools.keys(time.Now()))) {
		tool := l.tools[key]
		notes = append(notes, "no tool "+tool.name+" until "+tool.until.UTC().Format(time.RFC3339))
	}
	return notes
}

// trial has the changes that the next request for an attempt makes. It is remembered if the request succeeds.
type trial struct {
	limit    int  // bytes of the messages' text; 0 for the learnt bound
	plain    bool // calls and their results are texts; this is not remembered
	pictures []assembly.File
	tools    []Offered
	first    []assembly.File // the pictures of the first request that was refused for one of them
	tries    int             // the requests that lacked some of these
}

// form returns the form of the next request.
func (c *Client) form(input assembly.Input, forms Forms, next trial) Form {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grow()
	f := Form{
		Input: input, Images: NewImages(nil, 0, 0), NoRole: l.noRole, without: slices.Clone(l.without),
		Strict:  forms.Messages == Strict || forms.Messages == Auto && l.strict,
		leftOut: l.tools.keys(time.Now()), offered: new([]Offered),
	}
	for _, tool := range next.tools {
		f.leftOut[toolKey(tool.Tool)] = true
	}
	if pictures := forms.Images == adapters.On || forms.Images == AutoSwitch && !time.Now().Before(l.until); forms.NewImages != nil {
		f.Images = forms.NewImages()
		for _, kind := range imageTypes {
			if !pictures {
				delete(f.Images.limits, kind)
			}
		}
		f.Images.leftOut = l.pictures.keys(time.Now())
		for _, file := range next.pictures {
			f.Images.leftOut[pictureKey(file)] = true
		}
	}
	limit := cmp.Or(next.limit, l.limit)
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
// remembers that form. If the server refuses a picture or a tool, or if nothing explains the refusal of a request with
// pictures, Adapt makes it without them: the people read which picture the model has not seen, and a WARNING of the
// run names the tool. No other thread is changed by that. A refusal of every form fails for good.
func (c *Client) Adapt(input assembly.Input, forms Forms, emit func(stream.Message) error, try func(Form, func(stream.Message) error) error) error {
	var next trial
	emit = c.Telling(input, emit)
	for n := 1; ; n++ {
		f, begun := c.form(input, forms, next), false
		if next.plain {
			f.Input.Messages = assembly.Plain(f.Input.Messages)
		}
		err := try(f, func(m stream.Message) error {
			if !begun {
				begun = true
				c.keep(next)
				if err := c.warn(input, f, next, emit); err != nil {
					return err
				}
			}
			return emit(m)
		})
		fault, ok := errors.AsType[*Error](err)
		if err == nil {
			c.keep(next)
		}
		if !ok || begun || n == maxForms || !fault.isRefusal() {
			return err
		}
		cause, again := refusalOf(fault, forms, f), false
		switch cause {
		case tooLong:
			next.limit, again = shorter(fault, input, f)
		case badTool:
			again = next.withoutTool(fault.said, *f.offered)
		case badPicture:
			again = next.withoutPicture(f.Images.list)
		case lacksThoughts: // of calls that another model, or another program, has made
			again, next.plain = !next.plain, true
		default:
			again = c.learn(cause, fault, forms, f)
		}
		if !again && (forms.Images == AutoSwitch || f.Images.papers) && f.Images.Any() && !fault.mayPass(forms) {
			next.pictures, again = append(next.pictures, f.Images.list...), true
		}
		switch {
		case again:
		case cause == noRefusal:
			return err
		default:
			return final(fault, cause, input)
		}
	}
}

// withoutPicture leaves out pictures of a refused request: each of the newest alone, since one of them is the
// likely cause; then all but the newest, since there may be too many; then all. It reports whether there were some.
func (t *trial) withoutPicture(sent []assembly.File) bool {
	if t.tries == 0 {
		t.first = sent
	}
	t.tries++
	switch n := len(t.first); {
	case len(sent) == 0:
		return false
	case t.tries <= min(n, maxAlone):
		t.pictures = t.first[t.tries-1 : t.tries]
	case t.tries == min(n, maxAlone)+1 && n > 2:
		t.pictures = t.first[1:]
	default:
		t.pictures = t.first
	}
	return true
}

// withoutTool leaves out the tool that the words of a refusal name, else those of other servers, else all. It
// reports whether there was one.
func (t *trial) withoutTool(words string, offered []Offered) bool {
	named := namedTools(words, offered)
	if len(named) == 0 {
		named = slices.DeleteFunc(slices.Clone(offered), func(o Offered) bool { return o.Server == "" })
	}
	if len(named) == 0 {
		named = offered
	}
	t.tools = append(t.tools, named...)
	return len(named) > 0
}

// Telling returns emit for the answer to a turn: the answer names the pictures of the turn that the server has refused.
func (c *Client) Telling(input assembly.Input, emit func(stream.Message) error) func(stream.Message) error {
	return func(m stream.Message) error {
		if text := strings.TrimSpace(m.Text); m.Type == stream.Answer && m.OfMain() && text != "" && text != turn.DefaultQuietReply {
			if unseen := c.unseen(input); len(unseen) > 0 {
				m.Text += "\n\n(I couldn't look at " + strings.Join(unseen, " and ") + ": the model's server did not accept it.)"
			}
		}
		return emit(m)
	}
}

// unseen returns the names of the turn's pictures that the server has refused.
func (c *Client) unseen(input assembly.Input) (names []string) {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.pictures.keys(time.Now())
	for _, said := range input.Said {
		for _, file := range said.Files {
			if file.Path != "" && left[pictureKey(file)] {
				names = append(names, cmp.Or(Plain(file.Name, 120), "the picture"))
			}
		}
	}
	return names
}

// warn emits a WARNING at the beginning of a run for each of its tools that the request lacks.
func (c *Client) warn(input assembly.Input, f Form, next trial, emit func(stream.Message) error) error {
	if input.Step > 0 && len(next.tools) == 0 {
		return nil
	}
	left := slices.Clone(input.Tools)
	for _, tool := range next.tools {
		if !slices.ContainsFunc(left, func(t runinput.Tool) bool { return toolKey(t) == toolKey(tool.Tool) }) {
			left = append(left, tool.Tool)
		}
	}
	for _, tool := range left {
		if f.leftOut[toolKey(tool)] {
			text := "The tool " + toolName(tool) + " is left out: the model's server refuses its schema."
			if err := emit(stream.Message{Type: stream.Warning, Text: text, Time: time.Now()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep remembers with which bound, and without which pictures and tools, a request has succeeded.
func (c *Client) keep(next trial) {
	l := &c.learnt
	l.mu.Lock()
	defer l.mu.Unlock()
	if next.limit > 0 {
		l.limit = next.limit
		l.note(formAge)
	}
	for _, file := range next.pictures {
		l.pictures.add(pictureKey(file), Plain(file.Name, 120), time.Now())
	}
	for _, tool := range next.tools {
		l.tools.add(toolKey(tool.Tool), toolName(tool.Tool), time.Now())
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
	if cause != badImages {
		age := formAge
		if fault.isFault() {
			age = faultAge
		}
		l.note(age)
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
	badPicture // one picture of several, or its form or size
	badTool    // the schema of a tool
	badRoles
	lacksThoughts
)

// unknown matches the words of a refusal of a parameter.
const unknown = `(?:unknown|unrecogni[sz]ed|unsupported|(?:not|n't) (?:supported|permitted|allowed|enabled|recogni[sz]ed|support)|no endpoints found|unexpected|extra_forbidden|additional properties|(?:in|not (?:a )?)valid (?:param|argument|field)|requires --)`

// The words of servers; TestRefusals names them.
var (
	longWords  = regexp.MustCompile(`(?i)context_length_exceeded|context[ _](?:length|size|window|limit|overflow)|exceed_context_size|(?:prompt|input|request|message|string)s?(?: is| are)? too (?:long|large)|request_too_large|too many (?:input )?tokens|maximum (?:context|prompt|model|number of tokens|input)|input token count|input length|model token limit|reduce the length|tokens to keep|\bn_ctx\b|\bmax_(?:seq|model)_len|\bmax_new_tokens|prompt\W[^.]{0,60}(?:too long|exceed|(?:long|great)er than)`)
	imageWords = regexp.MustCompile(`(?i)image|picture|vision|visual|multi-?modal|mmproj|must be a string|valid string|expected a string|type \W?string|content (?:type|part)`)
	// pictureWords are about a picture and not about the model. modelWords are about the model, even if they name a picture.
	pictureWords  = regexp.MustCompile(`(?i)dimension|pixel|(?:image|picture|media|mime)[ _]?(?:format|type)|formats?\W|too (?:large|big|small|many)|exceed|corrupt|truncat|decod|(?:not|n't|unable to|fail(?:ed)? to|cannot|could not be) (?:process|identify|load|loaded|download|fetch|read|represent)|valid (?:base64 |data |input )?(?:image|picture|png|jpe?g|gif|webp|data)|unsupported (?:image|picture|media)\b|maximum|at most|base64`)
	modelWords    = regexp.MustCompile(`(?i)at most 0\b|mmproj|multi-?modal|no endpoints found|(?:by|certain|this|the|that) models?\b|image input`)
	documentWords = regexp.MustCompile(`(?i)\b(?:file|document|pdf)s?\b|file_data|content(?:\[[^\]]*\])?[ .](?:type|part)`)
	// schemaWords are about the schema of a tool, callWords about a call that the model has written.
	schemaWords   = regexp.MustCompile(`(?i)\b(?:json[ _]?)?schemas?\b|function[ _]declarations?|invalid_function_parameters|\b(?:tools?|functions?)(?:\.|\[)\d`)
	callWords     = regexp.MustCompile(`(?i)did not match|tool[ _]call|tool_use_failed|failed_generation|call a function`)
	roleWords     = regexp.MustCompile(`(?i)\broles?\b|alternat|interleav|(?:successive|consecutive) |system (?:message|prompt|instruction)|(?:first|last) message|developer instruction|chat.?template|jinja|['"` + "`" + `]system['"` + "`" + `]`)
	toolWords     = regexp.MustCompile(`(?i)\btools?\b|tool_calls?|function`)
	declinedWords = regexp.MustCompile(`(?i)content[ _]?filter|content[ _]management|content_policy|ResponsibleAI|data_?inspection|inappropriate content|considered high risk|prohibited_content|safety (?:system|filter|reasons)|usage policy|moderation|\bflagged\b`)
	formWords     = regexp.MustCompile(`(?i)` + unknown + `|template|jinja|\broles?\b|invalid|\bmust\b|\bonly\b|expected|follow|preced|missing|required|cannot|requires`)
	// miscalledWords say that the model has written a bad call this time: the request was right.
	miscalledWords = regexp.MustCompile(`(?i)tool_use_failed|failed_generation|failed to (?:call|generate) an? (?:tool|function)|failed to parse (?:tool|function|input at)|(?:error|failed|failure) parsing (?:tool|function)|parse_error|malformed_function_call|tool call validation failed`)
	// lackedWords say that a provider wants back what its model has thought before a call.
	lackedWords  = regexp.MustCompile(`(?i)(?:reasoning_content|reasoning_details|thinking\b).{0,80}(?:must be passed back|missing)|(?:missing|invalid|required).{0,40}thought_?signature|thought_?signature.{0,40}(?:missing|invalid|required|not valid)|expected \W{0,4}(?:redacted_)?thinking|invalid \W{0,4}signature\W{0,4} in \W{0,4}thinking`)
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

// isFault reports whether the server calls the refusal a fault of its own.
func (e *Error) isFault() bool { return e.Status == 0 || e.Status == 500 }

// isAboutTools reports whether words are about the form of calls and results, and not about their content or the time.
func isAboutTools(words string) bool {
	return toolWords.MatchString(words) && formWords.MatchString(words) && !passingWords.MatchString(words)
}

// mayPass reports whether an unexplained refusal has nothing to do with the request's images: the provider
// declines the words, or the server had a fault of its own. Only a server of models has the status 500, or an
// error in its stream, for a form that it cannot take.
func (e *Error) mayPass(forms Forms) bool {
	return e.sentence != "" || miscalledWords.MatchString(e.said) || e.isFault() && (forms.Messages == "" || passingWords.MatchString(e.said))
}

// refusalOf returns why the server has refused a request.
func refusalOf(fault *Error, forms Forms, f Form) refusal {
	switch words := fault.said; {
	case f.offered != nil && len(*f.offered) > 0 && schemaWords.MatchString(words) && !callWords.MatchString(words):
		return badTool
	case miscalledWords.MatchString(words):
		return noRefusal
	case lackedWords.MatchString(words) && UsesTools(f.Input.Messages):
		return lacksThoughts
	case namedParameter(words, forms, f) != "":
		return badParameter
	case longWords.MatchString(words), fault.Status == 413 && !f.Images.Any():
		return tooLong
	case f.Images.papers && (imageWords.MatchString(words) || documentWords.MatchString(words)):
		return badPicture
	case f.Images.Any() && (fault.Status == 413 || imageWords.MatchString(words) && pictureWords.MatchString(words) && !modelWords.MatchString(words)):
		return badPicture
	case f.Images.Any() && imageWords.MatchString(words):
		return badImages
	case forms.Messages != "" && (roleWords.MatchString(words) || !f.Strict && UsesTools(f.Input.Messages) && isAboutTools(words)):
		return badRoles
	}
	return noRefusal
}

// toolNumber matches the number of a tool in the words of a refusal; of several the last one counts, which is Google's.
var toolNumber = regexp.MustCompile(`(?i)(?:tools?|functions?|function_declarations)(?:\.|\[)(\d{1,4})`)

// namedTools returns the tools that a refusal names: in quotes, or else by their number in the request, or else as a
// word.
func namedTools(words string, offered []Offered) (named []Offered) {
	isNamed := func(around string) []Offered {
		return slices.DeleteFunc(slices.Clone(offered), func(o Offered) bool {
			name := regexp.QuoteMeta(o.name)
			return !regexp.MustCompile(strings.ReplaceAll(around, "NAME", name)).MatchString(words)
		})
	}
	if named = isNamed("['\"`]NAME['\"`]"); len(named) > 0 {
		return named
	}
	if numbers := toolNumber.FindAllStringSubmatch(words, -1); numbers != nil {
		if i, _ := strconv.Atoi(numbers[len(numbers)-1][1]); i < len(offered) {
			return offered[i : i+1]
		}
	}
	return isNamed(`(?:^|[^\w-])NAME(?:[^\w-]|$)`)
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
