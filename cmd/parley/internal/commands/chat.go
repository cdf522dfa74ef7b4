package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/adapters/web/access"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/boot"
	"parley/cmd/parley/internal/chat"
	"parley/cmd/parley/internal/daemon"
	"parley/cmd/parley/internal/operator"
	"parley/config"
	"parley/config/secret"
	"parley/ingest/event"
)

// The exit statuses of a chat, besides those of other commands.
const (
	statusNoAnswer    = 5
	statusInterrupted = 130
)

// tokenVariable is the environment variable with the token of a web workspace.
const tokenVariable = "PARLEY_TOKEN"

// chatFlags are the flags of chat.
type chatFlags struct {
	config, workspace, thread, once, url, tokenFile string
	json, quiet                                     bool
}

func chatCommand() *cobra.Command {
	var f chatFlags
	c := &cobra.Command{
		Use:   "chat",
		Short: "Talks to the agent of a web workspace in the terminal",
		Long: `Talks to the agent of a web workspace in the terminal, over the HTTP API of the running daemon.

Each typed line is a question. /stop, /new and /status are commands, and on a terminal /help, which lists them. There one can edit a
line, recall earlier ones, and paste a block, which is one question; Markdown has its look. Ctrl-C stops the answer; twice, it ends the chat.
The token of the built-in workspace is found beside the store, and that of another one in its file. Give the token of another
caller in ` + tokenVariable + ` or with --token-file.

Exit status: 0 answered, 1 refused, 4 no daemon, 5 no answer to the last question, 130 interrupted.`,
		Example: "  parley chat\n  parley chat --once 'What is new?'",
		Args:    wrong(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return talk(c, f) },
	}
	configFlag(c, &f.config, ifExists)
	flags := c.Flags()
	flags.StringVar(&f.workspace, "workspace", "", "a web workspace (default local, or the only one)")
	flags.StringVar(&f.thread, "thread", "", "the UUID of a thread to go on with (default a new thread)")
	flags.StringVar(&f.once, "once", "", "asks this, prints the answer and ends")
	flags.StringVar(&f.url, "url", "", "address of the daemon (default the listener of the configuration)")
	flags.StringVar(&f.tokenFile, "token-file", "", "a file with a token of the workspace")
	flags.BoolVar(&f.json, "json", false, `prints {"thread_id","run_id","answered","answer","error"} for each question`)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "prints the answers only")
	return c
}

// talk runs the chat.
func talk(c *cobra.Command, f chatFlags) error {
	client, err := f.client(c)
	if err != nil {
		return err
	}
	s := &chat.Session{Client: client, Screen: &chat.Screen{Out: c.OutOrStdout(), Aside: c.ErrOrStderr(), Live: isTerminal(os.Stdout) && !f.json, JSON: f.json, Colour: os.Getenv(forceColor) != "" || isTerminal(os.Stderr) && colored()}}
	s.Screen.Styled = s.Screen.Live && colored()
	s.Screen.Waits = s.Screen.Live && !f.quiet && os.Getenv("TERM") != "dumb"
	if f.quiet {
		s.Screen.Aside = io.Discard
	}
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	s.Interrupts = interrupts
	ctx, stop := signal.NotifyContext(context.WithoutCancel(c.Context()), syscall.SIGTERM) // SIGINT stops an answer
	defer stop()
	if c.Flags().Changed("once") {
		return chatStatus(s.Once(ctx, f.once))
	}
	if isTerminal(os.Stdin) {
		s.Prompt = "> "
		fmt.Fprintf(s.Screen.Aside, "Workspace %s, thread %s. Ctrl-C stops an answer, Ctrl-D ends, /help shows more.\n", client.Workspace, client.Thread)
		if s.Screen.Live && os.Getenv("TERM") != "dumb" {
			return chatStatus(edit(ctx, s))
		}
	}
	return chatStatus(s.Run(ctx, os.Stdin))
}

// edit runs a chat whose person edits lines at the terminal, which is as before at the end.
func edit(ctx context.Context, s *chat.Session) error {
	in := int(os.Stdin.Fd())
	before, err := term.MakeRaw(in)
	if err != nil {
		return s.Run(ctx, os.Stdin)
	}
	defer func() { _ = term.Restore(in, before) }()
	e := chat.NewEditor(os.Stdin, os.Stdout)
	defer e.SetBracketedPasteMode(false)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	defer signal.Stop(resized)
	resize := func() {
		if columns, _, err := term.GetSize(in); err == nil {
			e.SetWidth(columns, s.Prompt)
		}
	}
	resize()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		for {
			select {
			case <-resized:
				resize()
			case <-ctx.Done():
				return
			}
		}
	}()
	s.Screen.Out = e
	if s.Screen.Aside != io.Discard && isTerminal(os.Stderr) {
		s.Screen.Aside = e
	}
	defer fmt.Fprintln(e)
	return s.Edit(ctx, e)
}

// chatStatus gives the end of a chat its exit status.
func chatStatus(err error) error {
	for _, known := range []struct {
		err    error
		status int
	}{{chat.ErrAway, statusNoDaemon}, {chat.ErrNoAnswer, statusNoAnswer}, {chat.ErrInterrupted, statusInterrupted}} {
		if errors.Is(err, known.err) {
			if known.err == chat.ErrNoAnswer {
				err = fmt.Errorf("%w: see parley runs --failed", err)
			}
			return command.ExitError{Status: known.status, Err: err}
		}
	}
	return err
}

// client returns the client that the flags and the configuration describe.
func (f chatFlags) client(c *cobra.Command) (*chat.Client, error) {
	thread := cmp.Or(strings.ToLower(f.thread), uuid.NewString())
	if uuid.Validate(thread) != nil {
		return nil, command.UsageError{Err: errors.New("--thread must be a UUID")}
	}
	conf, found := config.Read(f.config)
	if len(found) > 0 {
		if client, err := operator.Dial(c.Context(), conf.Socket()); err != nil {
			return nil, faults(found)
		} else if err := client.Close(); err != nil {
			return nil, err
		}
		warn(c, found)
	}
	w, err := f.webWorkspace(conf)
	if err != nil {
		return nil, err
	}
	token, err := f.token(conf, w)
	if err != nil {
		return nil, err
	}
	return &chat.Client{Base: cmp.Or(strings.TrimSuffix(f.url, "/"), boot.BaseURL(conf.Listen)), Token: token, Workspace: w, Thread: thread}, nil
}

// webWorkspace returns the id of the workspace. Only with --url may it be one of another configuration.
func (f chatFlags) webWorkspace(conf *config.Config) (string, error) {
	var ids []string
	for _, w := range conf.Workspaces {
		if w.Platform == event.Web {
			ids = append(ids, w.ID)
		}
	}
	switch local := config.Default().Workspaces[0].ID; {
	case f.workspace != "" && (f.url != "" || slices.Contains(ids, f.workspace)):
		return f.workspace, nil
	case f.workspace == "" && slices.Contains(ids, local):
		return local, nil
	case f.workspace == "" && len(ids) == 1:
		return ids[0], nil
	case len(ids) == 0:
		return "", command.UsageError{Err: errors.New("chat needs a web workspace, and the configuration has none: write a file with platform: web")}
	}
	return "", command.UsageError{Err: errors.New("--workspace must be one of the web workspaces: " + strings.Join(ids, ", "))}
}

// token returns the token of --token-file or the environment, or that of the built-in workspace.
func (f chatFlags) token(conf *config.Config, workspace string) (secret.Value, error) {
	given := os.Getenv(tokenVariable)
	if f.tokenFile != "" {
		content, err := os.ReadFile(f.tokenFile)
		if err != nil {
			return secret.Value{}, err
		}
		given = string(content)
	}
	if given = strings.TrimSpace(given); given != "" {
		return secret.New(given), nil
	}
	if own := ownToken(conf, workspace); f.url == "" && own != nil {
		return *own, nil
	}
	if !slices.ContainsFunc(conf.Workspaces, func(w config.Workspace) bool { return w.ID == workspace && config.IsLocal(w.Config) }) {
		return secret.Value{}, command.UsageError{Err: fmt.Errorf("workspace %s needs one of its tokens in %s or with --token-file", workspace, tokenVariable)}
	}
	token, err := daemon.LocalToken(conf)
	if errors.Is(err, fs.ErrNotExist) {
		return token, command.ExitError{Status: statusNoDaemon, Err: errors.New("no daemon has run with this configuration: start it with parley run")}
	}
	return token, err
}

// ownToken returns the first token of a workspace whose holder speaks for themselves, as its file has it; nil for none.
func ownToken(conf *config.Config, workspace string) *secret.Value {
	w := conf.Workspace(workspace)
	if w == nil {
		return nil
	}
	web, ok := w.Config.(*access.Config)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(web.Tokens, func(t access.Token) bool { return t.Senders != access.SendersAny && !t.Token.IsZero() })
	if i < 0 {
		return nil
	}
	return &web.Tokens[i].Token
}
