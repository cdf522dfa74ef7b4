package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"charm.land/huh/v2"
	"github.com/spf13/cobra"

	"parley/adapters"
	"parley/cmd/internal/command"
	"parley/cmd/parley/internal/setup"
)

// initFlags are the flags of init.
type initFlags struct {
	dir, data, platform, workspace, agent string
	set, secrets                          map[string]string
	script, force, offline, json          bool
}

func initCommand() *cobra.Command {
	var f initFlags
	c := &cobra.Command{
		Use:   "init",
		Short: "Asks for a platform and an agent, tests the answers, and writes the files of a configuration",
		Long: `Asks for a platform and an agent, tests the answers at once, and writes parley.yaml, the file of a workspace, and a file for each
secret. Only you can read the files. It replaces no file without --force.

With --non-interactive it asks nothing: the answers are in flags, --set CHOICE.KEY=VALUE, --secret CHOICE.KEY=FILE, or in the
environment (SLACK_APP_TOKEN, SLACK_BOT_TOKEN, DISCORD_TOKEN, BLUEBUBBLES_URL, BLUEBUBBLES_PASSWORD, OPENAI_API_KEY,
ANTHROPIC_API_KEY, AGUI_TOKEN, WEBHOOK_SECRET). If a platform or an agent refuses an answer, it writes nothing and exits with 1.`,
		Example: `  parley init
  SLACK_APP_TOKEN=… SLACK_BOT_TOKEN=… parley init --non-interactive --platform slack --workspace acme --agent ollama --set ollama.model=llama3.2`,
		Args: wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", ".", "the folder of the configuration")
	flags.StringVar(&f.data, "data", "", "the absolute folder of the store and the attachments (default data in the folder of the configuration)")
	flags.StringVar(&f.platform, "platform", "", "the platform: "+ids(setup.Platforms()))
	flags.StringVar(&f.workspace, "workspace", "", "the id of the workspace (default the platform)")
	flags.StringVar(&f.agent, "agent", "", "the agent: "+ids(setup.Agents(nil)))
	flags.StringToStringVar(&f.set, "set", nil, "an answer, such as openai.model=NAME; may be repeated")
	flags.StringToStringVar(&f.secrets, "secret", nil, "a file with a secret answer, such as slack.bot_token=FILE; may be repeated")
	flags.BoolVar(&f.script, "non-interactive", false, "ask nothing")
	flags.BoolVar(&f.force, "force", false, "replace files")
	flags.BoolVar(&f.offline, "offline", false, "test no answer")
	jsonFlag(c, &f.json)
	return c
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
	if !f.script && !isTerminal(os.Stdin) {
		return command.UsageError{Err: errors.New("init asks on a terminal: use one, or --non-interactive with the answers in flags")}
	}
	agents := setup.Agents(setup.Models(c.Context(), cmp.Or(f.set["ollama.base_url"], setup.OllamaURL)))
	plan, err := f.plan(agents)
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
	fmt.Fprintf(c.OutOrStdout(), "wrote %s\nnext: %s\n", strings.Join(paths, ", "), f.next())
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
func (f *initFlags) plan(agents []setup.Choice) (p setup.Plan, err error) {
	p.Workspace, p.Data = f.workspace, f.data
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
		return p, fmt.Errorf("%s exists already: use another folder with --dir, or --force to replace it", strings.Join(before, ", "))
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
	err = ask(ctx, huh.NewSelect[int]().Title(title).Options(list...).Value(&n))
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
func (prompts) Say(text string) { fmt.Fprintln(os.Stderr, text) }

// ask shows a field. A person who ends it with Ctrl-C ends the command.
func ask(ctx context.Context, field huh.Field) error {
	accessible := os.Getenv("ACCESSIBLE") != "" || os.Getenv("TERM") == "dumb"
	err := huh.NewForm(huh.NewGroup(field)).WithAccessible(accessible).WithOutput(os.Stderr).RunWithContext(ctx)
	if errors.Is(err, huh.ErrUserAborted) {
		return command.ExitError{Status: statusInterrupted, Err: errors.New("interrupted")}
	}
	return err
}
