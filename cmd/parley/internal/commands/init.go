package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"parley/adapters"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/setup"
	"parley/config"
)

// initFlags are the flags of init.
type initFlags struct {
	dir, data, platform, workspace, agent string
	id, manifest                          string // the agent's, for agent add; the platform of a manifest
	set, secrets                          map[string]string
	script, force, offline, json          bool
}

func initCommand() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init",
		Short: "Asks for a platform and an agent, tests the answers, and writes the files of a configuration",
		Long: `Asks for a platform and an agent, tests the answers at once, and writes parley.yaml, the file of a workspace, and a file for each
secret. Only you can read the files. If the folder has a configuration, init adds a workspace or an agent to it, and leaves its comments
and its order. It replaces no file without --force. Scripts add by parley workspace add and parley agent add.

With --non-interactive it asks nothing: the answers are in flags, --set CHOICE.KEY=VALUE, --secret CHOICE.KEY=FILE, or in the
environment (SLACK_APP_TOKEN, SLACK_BOT_TOKEN, DISCORD_TOKEN, BLUEBUBBLES_URL, BLUEBUBBLES_PASSWORD, OPENAI_API_KEY,
ANTHROPIC_API_KEY, AGUI_TOKEN, WEBHOOK_SECRET). If a platform or an agent refuses an answer, it writes nothing and exits with 1.`,
		Example: `  parley init
  SLACK_APP_TOKEN=… SLACK_BOT_TOKEN=… parley init --non-interactive --platform slack --workspace acme --agent ollama --set ollama.model=llama3.2`,
		Args: wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.answerFlags(c)
	flags := c.Flags()
	flags.StringVar(&f.data, "data", "", "the absolute folder of the store and the attachments (default data in the folder of the configuration)")
	flags.StringVar(&f.platform, "platform", "", "the platform: "+ids(setup.Platforms()))
	flags.StringVar(&f.workspace, "workspace", "", "the id of the workspace (default the platform)")
	flags.StringVar(&f.agent, "agent", "", "the agent: "+ids(setup.Agents(nil)))
	flags.StringVar(&f.manifest, "manifest", "", "print the manifest of a platform's app, such as slack, and end")
	flags.BoolVar(&f.script, "non-interactive", false, "ask nothing")
	flags.BoolVar(&f.force, "force", false, "replace files")
	return c
}

// answerFlags are the flags of init, workspace add and agent add.
func (f *initFlags) answerFlags(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", ".", "the folder of the configuration")
	flags.StringToStringVar(&f.set, "set", nil, "an answer, such as openai.model=NAME; may be repeated")
	flags.StringToStringVar(&f.secrets, "secret", nil, "a file with a secret answer, such as slack.bot_token=FILE; may be repeated")
	flags.BoolVar(&f.offline, "offline", false, "test no answer")
	jsonFlag(c, &f.json)
}

func workspaceCommand() *cobra.Command {
	f := initFlags{script: true}
	add := &cobra.Command{
		Use:   "add PLATFORM",
		Short: "Adds a workspace to the configuration, without questions",
		Long: `Adds the file of a workspace to the configuration in a folder, and asks nothing: the answers are as for parley init --non-interactive.
They are tested first.`,
		Example: "  SLACK_APP_TOKEN=… SLACK_BOT_TOKEN=… parley workspace add slack --id acme\n  parley workspace add discord --secret discord.token=FILE --agent assistant",
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f.platform = args[0]
			return f.add(c)
		},
	}
	f.answerFlags(add)
	add.Flags().StringVar(&f.workspace, "id", "", "the id of the workspace (default the platform)")
	add.Flags().StringVar(&f.agent, "agent", "", "the id of the agent that answers there (default the first one)")
	c := &cobra.Command{Use: "workspace", Short: "Adds a workspace to the configuration", Example: "  parley workspace add slack --id acme"}
	c.AddCommand(add)
	return c
}

func agentCommand() *cobra.Command {
	f := initFlags{script: true, platform: "http"}
	add := &cobra.Command{
		Use:   "add KIND",
		Short: "Adds an agent to the configuration, without questions",
		Long: `Adds an agent to the list in parley.yaml, whose comments and order stay, and asks nothing: the answers are as for
parley init --non-interactive. They are tested first.`,
		Example: "  parley agent add ollama --id local-model --set ollama.model=llama3.2",
		Args:    wrong(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f.agent = args[0]
			return f.add(c)
		},
	}
	f.answerFlags(add)
	add.Flags().StringVar(&f.id, "id", "", "the id of the agent (default assistant, or the kind)")
	c := &cobra.Command{Use: "agent", Short: "Adds an agent to the configuration", Example: "  parley agent add ollama --set ollama.model=llama3.2"}
	c.AddCommand(add)
	return c
}

// add completes a plan that extends the configuration.
func (f *initFlags) add(c *cobra.Command) error {
	base, err := setup.Open(f.dir)
	if err != nil {
		return faults(err)
	}
	if base == nil {
		return fmt.Errorf("%s has no %s: make one with parley init", f.dir, config.File)
	}
	return f.complete(c, base)
}

// ids returns the ids of choices.
func ids(all []setup.Choice) string {
	list := make([]string, len(all))
	for i, c := range all {
		list[i] = c.ID
	}
	return strings.Join(list, ", ")
}

// run completes the plan and writes its files.
func (f *initFlags) run(c *cobra.Command) error {
	if f.manifest != "" {
		choice, _ := setup.Find(setup.Platforms(), f.manifest)
		if choice.Manifest == "" {
			return command.UsageError{Err: fmt.Errorf("%s has no manifest; slack has one", f.manifest)}
		}
		fmt.Fprint(c.OutOrStdout(), choice.Manifest)
		return nil
	}
	if !f.script && !isTerminal(os.Stdin) {
		return command.UsageError{Err: errors.New("init asks on a terminal: use one, or --non-interactive with the answers in flags")}
	}
	if f.script || f.force {
		return f.complete(c, nil)
	}
	base, err := setup.Open(f.dir)
	if err != nil {
		return faults(err)
	}
	return f.complete(c, base)
}

// complete completes the plan, which extends a configuration unless that is nil, and writes its files.
func (f *initFlags) complete(c *cobra.Command, base *setup.Base) error {
	agents := setup.Agents(setup.Models(c.Context(), cmp.Or(f.set["ollama.base_url"], setup.OllamaURL)))
	plan, err := f.plan(agents, base)
	if err != nil {
		return err
	}
	given, err := f.given()
	if err != nil {
		return err
	}
	interview := &setup.Interview{Given: given, Offline: f.offline}
	if !f.script {
		interview.Asker = prompts{}
	}
	if err := interview.Complete(c.Context(), &plan, agents); err != nil {
		return err
	}
	paths, err := plan.Write(f.dir, f.force)
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(c.OutOrStdout(), map[string]any{"files": paths})
	}
	fmt.Fprintf(c.OutOrStdout(), "wrote %s\n", strings.Join(paths, ", "))
	if base != nil {
		fmt.Fprintln(c.OutOrStdout(), "next: parley reload, or parley run if no daemon runs")
		return nil
	}
	if !f.script {
		fmt.Fprintln(c.OutOrStdout(), "then: parley chat talks to the agent, parley doctor finds faults, parley console opens the pages for operators")
	}
	fmt.Fprintf(c.OutOrStdout(), "next: %s\n", f.next())
	return nil
}

// next returns the command that starts the daemon.
func (f *initFlags) next() string {
	if abs, err := filepath.Abs(f.dir); err == nil && abs == filepath.Dir(systemConfig) {
		return "systemctl enable --now parley"
	}
	if filepath.Clean(f.dir) == "." {
		return "parley run"
	}
	return "parley run --config " + filepath.Join(f.dir, "parley.yaml")
}

// plan returns the plan with the choices of the flags. It fails early if a file would be replaced.
func (f *initFlags) plan(agents []setup.Choice, base *setup.Base) (p setup.Plan, err error) {
	p.Workspace, p.Data, p.Onto, p.AgentID = f.workspace, f.data, base, f.id
	if f.script && base != nil && f.platform != "http" { // a workspace has a configured agent
		agents = base.Agents()
		f.agent = cmp.Or(f.agent, agents[0].ID)
	}
	if f.data != "" && !filepath.IsAbs(f.data) {
		return p, command.UsageError{Err: fmt.Errorf("--data is %q, must be an absolute path, such as /var/lib/parley", f.data)}
	}
	for _, c := range []struct {
		flag, id string
		all      []setup.Choice
		part     *setup.Part
	}{{"--platform", f.platform, setup.Platforms(), &p.Platform}, {"--agent", f.agent, agents, &p.Agent}} {
		choice, ok := setup.Find(c.all, c.id)
		if !ok && c.id != "" || c.id == "" && f.script {
			return p, command.UsageError{Err: fmt.Errorf("%s must be one of %s", c.flag, ids(c.all))}
		}
		c.part.Choice = choice
	}
	if before := p.Existing(f.dir); len(before) > 0 && !f.force {
		return p, fmt.Errorf("%s exists already: use parley workspace add or parley agent add, another folder with --dir, or --force to replace it", strings.Join(before, ", "))
	}
	return p, nil
}

// given returns the answers of the flags and of the environment. It fails for one that no choice has.
func (f *initFlags) given() (func(choice string, field adapters.Field) string, error) {
	known := map[string]bool{}
	for _, c := range append(setup.Platforms(), setup.Agents(nil)...) {
		for _, field := range c.Fields {
			known[c.ID+"."+field.Key] = true
		}
	}
	values := map[string]string{}
	for key, value := range f.set {
		values[key] = value
	}
	for key, path := range f.secrets {
		content, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		values[key] = strings.TrimSpace(string(content))
	}
	for key := range values {
		if !known[key] {
			return nil, command.UsageError{Err: fmt.Errorf("%s is no answer: write CHOICE.KEY, such as openai.model", key)}
		}
	}
	return func(choice string, field adapters.Field) string {
		value := values[choice+"."+field.Key]
		if value == "" && field.Env != "" && f.script {
			value = os.Getenv(field.Env)
		}
		return value
	}, nil
}

// prompts asks on the terminal.
type prompts struct{}

// Choose implements setup.Asker.
func (prompts) Choose(ctx context.Context, title string, options []string) (n int, err error) {
	list := make([]huh.Option[int], len(options))
	for i, o := range options {
		list[i] = huh.NewOption(o, i)
	}
	err = ask(ctx, huh.NewSelect[int]().Title(title).Options(list...).Height(len(list)+2).Value(&n))
	if err == nil { // the list is gone, or shows a part of its lines
		prompts{}.Say(title + " " + options[n])
	}
	return n, err
}

// Ask implements setup.Asker.
func (prompts) Ask(ctx context.Context, f adapters.Field) (text string, err error) {
	input := huh.NewInput().Title(f.Title).Placeholder(f.Default).Value(&text)
	if f.Secret {
		input.EchoMode(huh.EchoModePassword)
	}
	err = ask(ctx, input)
	return text, err
}

// Say implements setup.Asker.
func (prompts) Say(text string) {
	width, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || width < 20 {
		width = 1 << 20
	}
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			fmt.Fprintln(os.Stderr, line)
			line = ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	fmt.Fprintln(os.Stderr, line)
}

// ask shows a field. A person who ends it with Ctrl-C ends the command.
func ask(ctx context.Context, field huh.Field) error {
	accessible := os.Getenv("ACCESSIBLE") != "" || os.Getenv("TERM") == "dumb"
	err := huh.NewForm(huh.NewGroup(field)).WithAccessible(accessible).WithOutput(os.Stderr).RunWithContext(ctx)
	if errors.Is(err, huh.ErrUserAborted) {
		return command.ExitError{Status: statusInterrupted, Err: errors.New("interrupted")}
	}
	return err
}
