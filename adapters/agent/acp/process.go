package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"parley/adapters/agent/remote"
	"parley/assembly"
	"parley/ingest/event"
)

// process is a program that runs for a thread. One run at a time uses it.
type process struct {
	agent  *Agent
	thread string

	// The pool's mutex guards these.
	busy  bool
	since time.Time // when it was given back
	timer *time.Timer

	*conn
	info    info
	session string // the id of its session; empty before it has one
	options options
	chosen  map[string]string // the values of options that people had chosen when they were set
	told    string            // the options that people know
	open    *prompt           // that waits for an answer of people; nil for none
	files   *copies           // of files; nil before the first one
}

// version is the version of the protocol.
const version = 1

// info is the response to initialize, in which a program describes itself.
type info struct {
	ProtocolVersion   json.RawMessage `json:"protocolVersion"`
	AgentCapabilities struct {
		LoadSession        bool `json:"loadSession"`
		PromptCapabilities struct {
			Image           bool `json:"image"`
			EmbeddedContext bool `json:"embeddedContext"`
		} `json:"promptCapabilities"`
		MCPCapabilities struct {
			HTTP bool `json:"http"`
		} `json:"mcpCapabilities"`
		SessionCapabilities struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"sessionCapabilities"`
	} `json:"agentCapabilities"`
	AgentInfo struct {
		Name    string `json:"name"`
		Title   string `json:"title"`
		Version string `json:"version"`
	} `json:"agentInfo"`
	AuthMethods []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"authMethods"`
}

// resumes reports whether a session can go on without its updates being replayed.
func (i *info) resumes() bool {
	raw := i.AgentCapabilities.SessionCapabilities.Resume
	return len(raw) > 0 && string(raw) != "null" && string(raw) != "false"
}

// logins names the ways to log in; empty for none.
func (i *info) logins() string {
	var names []string
	for _, m := range i.AuthMethods {
		name := remote.Plain(m.Name, 60)
		if description := remote.Plain(m.Description, 120); description != "" && description != name {
			name += " (" + description + ")"
		}
		names = append(names, name)
	}
	return strings.Join(names, "; ")
}

// lineBytes and allBytes bound what a program writes: a line, and all lines of a prompt.
func (c Config) lineBytes() int  { return int(c.MaxBytes) + 1<<20 }
func (c Config) allBytes() int64 { return 16*c.MaxBytes + 16<<20 }

// begin starts the program and introduces Parley, unless the process runs.
func (p *process) begin(ctx context.Context) error {
	if p.conn != nil {
		select {
		case <-p.done: // it has ended meanwhile
			p.conn, p.session, p.open, p.options, p.chosen = nil, "", nil, options{}, nil
		default:
			return nil
		}
	}
	c := p.agent.config
	own := map[string]string{}
	for name, value := range c.Env {
		own[name] = value.Reveal()
	}
	heard := func(line string) { // at debug: it may repeat what people have said
		p.agent.log.Debug("an agent's program says", "text", p.agent.client.Clean(line))
	}
	child, err := start(c.Command, c.Dir, environment(own), heard)
	if err != nil {
		return p.agent.client.Invalid("the agent's program cannot be started", err)
	}
	p.conn = connect(child, c.lineBytes(), c.allBytes(), p.agent.log)
	if err = p.within(ctx, c.FirstByte, func(ctx context.Context) error { return p.initialize(ctx) }); err != nil {
		return p.fault("initialize", err)
	}
	return nil
}

var errSilent = errors.New("the agent's program does not answer (first_byte)")

// within bounds a call.
func (*process) within(ctx context.Context, most time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, most, errSilent)
	defer cancel()
	return call(ctx)
}

// initialize offers the program no files and no terminals.
func (p *process) initialize(ctx context.Context) error {
	of := "devel"
	if build, ok := debug.ReadBuildInfo(); ok {
		of = cmp.Or(strings.Trim(build.Main.Version, "()"), of)
	}
	p.info = info{}
	if err := p.call(ctx, "initialize", map[string]any{
		"protocolVersion":    version,
		"clientCapabilities": map[string]any{"fs": map[string]bool{"readTextFile": false, "writeTextFile": false}, "terminal": false},
		"clientInfo":         map[string]string{"name": "parley", "title": "Parley", "version": of},
	}, &p.info); err != nil {
		return err
	}
	if spoken := string(p.info.ProtocolVersion); spoken != fmt.Sprint(version) {
		return p.agent.client.Rejected(fmt.Sprintf("the agent speaks version %s of the protocol, and Parley speaks %d", remote.Plain(cmp.Or(spoken, "?"), 20), version), "")
	}
	return nil
}

// fault returns the error of a call to the program.
func (p *process) fault(method string, err error) error {
	refused, isRefused := errors.AsType[*rpcError](err)
	switch {
	case isRefused && refused.Code == authRequired:
		text := "the agent needs a login: log in once with the program itself, as the user and with the HOME of the daemon, or set its key in env"
		if logins := p.info.logins(); logins != "" {
			text += "; it offers: " + logins
		}
		return p.agent.client.Rejected(text, "")
	case isRefused:
		return p.agent.client.Failure(method+": "+refused.Error(), 0)
	case errors.Is(err, errLong), errors.Is(err, errMany):
		return p.agent.client.Rejected(err.Error(), "Sorry, my answer became too long, so I stopped.")
	case errors.Is(err, errSilent):
		return p.agent.client.Invalid(method, err)
	}
	select {
	case <-p.done:
		return p.agent.client.Failure(method+": "+err.Error(), 0) // its last words may repeat the input
	default:
		return err
	}
}

// stop ends the process: the program ends by itself, or is killed after a short time.
func (p *process) stop() {
	if p.conn != nil {
		_ = p.in.Close()
		after := time.NewTimer(endTime)
		defer after.Stop()
		output := p.messages
		for ended := false; !ended; {
			select {
			case _, more := <-output: // its last words
				if !more {
					output = nil
				}
			case <-p.done:
				ended = true
			case <-after.C:
				p.kill()
				<-p.done
				ended = true
			}
		}
	}
	p.clean()
}

// clean removes the copies of files.
func (p *process) clean() {
	if p.files != nil {
		p.files.remove()
		p.files = nil
	}
}

// kept is the content of assembly.Input.Session.
type kept struct {
	ID     string    `json:"id"`
	Always []allowed `json:"always,omitempty"`
}

// allowed is a call of a tool that people have allowed for good in the thread.
type allowed struct {
	Kind  string `json:"kind"`
	Title string `json:"title"`
}

// maxAlways bounds the calls that are allowed for good in a thread.
const maxAlways = 100

// opened is the response to a request that opens a session.
type opened struct {
	SessionID string `json:"sessionId"`
	offered
}

// ensure opens the session of a thread in the process: the one that was kept if the program can go on with it, else a new one. isNew says that
// the session knows nothing of the thread.
func (p *process) ensure(ctx context.Context, k *kept, keep func() error) (isNew bool, err error) {
	if p.session != "" && p.session == k.ID {
		return false, nil
	}
	dir, err := filepath.Abs(p.agent.config.Dir)
	if err != nil {
		return false, err
	}
	where := map[string]any{"cwd": dir, "mcpServers": p.servers()}
	open := func(method, id string) error {
		params := where
		if id != "" {
			params = map[string]any{"cwd": where["cwd"], "mcpServers": where["mcpServers"], "sessionId": id}
		}
		var got opened
		// The updates that a program replays for session/load are history, and call drops them.
		if err := p.within(ctx, p.agent.config.FirstByte, func(ctx context.Context) error { return p.call(ctx, method, params, &got) }); err != nil {
			return err
		}
		p.session, p.options, p.chosen = cmp.Or(id, got.SessionID), got.options(), nil
		return nil
	}
	if k.ID != "" {
		method := ""
		switch {
		case p.info.resumes():
			method = "session/resume"
		case p.info.AgentCapabilities.LoadSession:
			method = "session/load"
		}
		if method != "" {
			err = open(method, k.ID)
			if err == nil {
				return false, nil
			}
			if refused, ok := errors.AsType[*rpcError](err); !ok || refused.Code == authRequired {
				return false, p.fault(method, err)
			}
			p.agent.log.Warn("an agent's program does not find its session, and begins a new one", "err", p.fault(method, err))
		}
	}
	p.clean() // words of the earlier session may have been forgotten
	if err := open("session/new", ""); err != nil {
		return false, p.fault("session/new", err)
	}
	if p.session == "" {
		return false, p.agent.client.Invalid("session/new: the answer has no sessionId", nil)
	}
	k.ID = p.session
	return true, keep()
}

// servers returns the servers of tools, as session/new takes them; none if the program can use none of this kind.
func (p *process) servers() []any {
	list := []any{}
	if !p.info.AgentCapabilities.MCPCapabilities.HTTP {
		return list
	}
	for i, server := range p.agent.config.MCP {
		headers := []any{}
		if !server.Token.IsZero() {
			headers = append(headers, map[string]string{"name": "Authorization", "value": "Bearer " + server.Token.Reveal()})
		}
		list = append(list, map[string]any{"type": "http", "name": fmt.Sprintf("tools-%d", i+1), "url": server.URL, "headers": headers})
	}
	return list
}

// readKept reads the content of assembly.Input.Session.
func readKept(session string) (k kept) {
	_ = json.Unmarshal([]byte(session), &k) // one that cannot be read is none
	return k
}

// keeps returns a function that keeps k.
func keeps(input assembly.Input, k *kept) func() error {
	return func() error {
		if input.KeepSession == nil {
			return nil
		}
		raw, err := json.Marshal(k)
		if err != nil {
			return err
		}
		return input.KeepSession(string(raw), false)
	}
}

// allows reports whether people have allowed a call for good.
func (k *kept) allows(c *call) bool { return slices.Contains(k.Always, allowed{c.Kind, c.Title}) }

// allow notes that people have allowed a call for good.
func (k *kept) allow(c *call) {
	if k.Always = append(k.Always, allowed{c.Kind, c.Title}); len(k.Always) > maxAlways {
		k.Always = k.Always[len(k.Always)-maxAlways:]
	}
}

// plain returns a text of the program on one line.
func plain(text string, most int) string { return remote.Plain(event.Text(text), most) }
