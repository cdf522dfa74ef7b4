package commands

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/operator"
	"parley/cmd/parley/internal/setup"
	"parley/config"
	"parley/ingest/journal/listing"
)

const (
	// completeTime bounds the wait for the daemon while a person presses Tab.
	completeTime = time.Second
	// completeRows is the number of rows that are offered.
	completeRows = "50"
)

// offer returns the values that a shell offers for the word that is being typed, each with a tab and a description if it has one.
type offer func(c *cobra.Command, args []string) []string

// completeValues gives every flag and argument of the commands the values that a shell offers. Without values, it offers no files.
func completeValues(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(c.CommandPath(), "parley ")
		if values, ok := offeredArgs[path]; ok && values != nil {
			c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				return values(c, args), cobra.ShellCompDirectiveNoFileComp
			}
		} else if ok {
			c.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveDefault
			}
		}
		for name, values := range offeredFlags {
			if c.LocalFlags().Lookup(name) == nil {
				continue
			}
			if own, ok := offeredFlags[path+" --"+name]; ok {
				values = own
			}
			_ = c.RegisterFlagCompletionFunc(name, func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) { // it fails for an unknown flag
				if values == nil {
					return nil, cobra.ShellCompDirectiveDefault
				}
				return values(c, args), cobra.ShellCompDirectiveNoFileComp
			})
		}
		for _, child := range c.Commands() {
			walk(child)
		}
	}
	walk(root)
}

// offeredFlags are the values of flags by their names, or by the path of a command with the name. A nil offer offers files.
var offeredFlags = map[string]offer{
	"config": nil, "env-file": nil, "token-file": nil, "from-config": nil, "to-config": nil, "dir": nil, "data": nil,
	"color":                   words("auto", "always", "never"),
	"format":                  words("text", "json"),
	"workspace":               workspacesOf,
	"agent":                   agentsOf,
	"init --agent":            func(*cobra.Command, []string) []string { return strings.Split(ids(setup.Agents(nil)), ", ") },
	"platform":                words(config.PlatformNames()...),
	"init --platform":         func(*cobra.Command, []string) []string { return strings.Split(ids(setup.Platforms()), ", ") },
	"state":                   words(),
	"runs --state":            words(listing.RunStates()...),
	"runs list --state":       words(listing.RunStates()...),
	"threads --state":         words("running", "queued", "asking", "failed"),
	"threads list --state":    words("running", "queued", "asking", "failed"),
	"deliveries --state":      words(listing.DeliveryStates()...),
	"deliveries list --state": words(listing.DeliveryStates()...),
	"thread":                  threadsOf,
	"since":                   words("1h", "24h", "7d"),
	"usage --since":           words("7d", "30d", "90d"),
	"by":                      words(operator.UsageBys()...),
}

// offeredArgs are the values of arguments by the path of their command. A nil offer offers files.
var offeredArgs = map[string]offer{
	"backup": nil, "backup verify": nil, "restore": nil, "import": nil, "replay": nil, "man": nil,
	"runs show": runsIn(""), "runs retry": runsIn("failed"), "runs stop": runsIn("running"),
	"dead show": deadLetters, "dead retry": deadLetters, "dead discard": deadLetters,
	"deliveries show": deliveriesIn(""), "deliveries resend": deliveriesIn("unknown,failed"), "deliveries confirm": deliveriesIn("unknown,failed"), "deliveries drop": deliveriesIn("unknown,failed"),
	"threads show": threadsOf, "threads export": threadsOf,
	"schedules run": schedulesOf, "schedules pause": schedulesOf, "schedules resume": schedulesOf,
	"questions show": askingRuns, "questions answer": askingRuns,
}

// words offers fixed words.
func words(list ...string) offer { return func(*cobra.Command, []string) []string { return list } }

// present returns the configuration of a command, also with faults.
func present(c *cobra.Command) *config.Config {
	path, _ := c.Flags().GetString("config") // each command with such values has it
	conf, _ := config.Read(path)
	return conf
}

func workspacesOf(c *cobra.Command, _ []string) (list []string) {
	for _, w := range present(c).Workspaces {
		list = append(list, w.ID+"\t"+string(w.Platform))
	}
	return list
}

func agentsOf(c *cobra.Command, _ []string) (list []string) {
	for _, a := range present(c).Agents {
		list = append(list, a.ID+"\t"+a.Kind)
	}
	return list
}

// rowsFrom offers the rows of a list of the running daemon. Without one, it offers nothing.
func rowsFrom[T any](query url.Values, read func(*operator.Client, context.Context, url.Values) (operator.List[T], error), row func(T) (id, words string)) offer {
	return func(c *cobra.Command, args []string) (list []string) {
		if len(args) > 0 && c.Name() != "retry" { // only retry takes several
			return nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Root().Context()), completeTime)
		defer cancel()
		client, err := operator.Dial(ctx, present(c).Socket())
		if err != nil {
			return nil
		}
		defer client.Close()
		query.Set("limit", completeRows)
		page, err := read(client, ctx, query)
		if err != nil {
			return nil
		}
		for _, item := range page.Items {
			id, about := row(item)
			list = append(list, id+"\t"+oneLine(about))
		}
		return list
	}
}

func runsIn(state string) offer {
	return rowsFrom(chosen(map[string]string{"state": state}), (*operator.Client).Runs, func(x operator.Run) (string, string) {
		return x.ID, strings.TrimSpace(x.Agent + " " + x.State + " " + x.Error)
	})
}

func deliveriesIn(states string) offer {
	return rowsFrom(chosen(map[string]string{"state": states}), (*operator.Client).Deliveries, func(x operator.Delivery) (string, string) {
		return strconv.FormatInt(x.ID, 10), strings.TrimSpace(x.State + " " + place(x.ChannelName, x.Channel) + " " + x.Error)
	})
}

var (
	deadLetters = rowsFrom(url.Values{}, (*operator.Client).Dead, func(x operator.DeadLetter) (string, string) {
		return strconv.FormatInt(x.ID, 10), x.Workspace + " " + x.Error
	})
	threadsOf   = rowsFrom(url.Values{}, (*operator.Client).Threads, func(x operator.Thread) (string, string) { return x.ID, x.Title })
	schedulesOf = rowsFrom(url.Values{}, (*operator.Client).Schedules, func(x operator.Schedule) (string, string) { return x.Workspace + "/" + x.ID, x.Cron })
	askingRuns  = rowsFrom(url.Values{}, (*operator.Client).Questions, func(x operator.Question) (string, string) { return x.Run, firstLine(x.Text) })
)

// completionCommand gives cobra's command that prints the scripts of shells words like those of the other commands.
func completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.Short = "Prints the script that completes the commands in a shell"
		c.Long = c.Short + ". It offers commands, flags, and the ids that the configuration and the running daemon have."
		c.Example = "  source <(parley completion bash)\n  parley completion fish > ~/.config/fish/completions/parley.fish"
		for _, shell := range c.Commands() {
			shell.Short = "Prints the script of " + shell.Name()
		}
	}
}
