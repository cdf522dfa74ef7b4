package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/cmd/internal/command"
	"parley/config"
)

func schemaCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "schema",
		Short: "Prints the JSON Schema of the configuration's files, for editors",
		Long: `Prints the JSON Schema of the configuration's files, for editors. It admits parley.yaml and the file of a workspace;
--file prints that of one of them. An editor with the YAML language server needs one line at the beginning of a file:

  # yaml-language-server: $schema=parley.schema.json`,
		Example: "  parley schema > parley.schema.json",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			schema := config.Schema()
			switch file {
			case config.SchemaMain, config.SchemaWorkspace:
				schema["anyOf"] = []any{map[string]any{"$ref": "#/$defs/" + file}}
			case "":
			default:
				return command.UsageError{Err: fmt.Errorf("--file must be %s or %s", config.SchemaMain, config.SchemaWorkspace)}
			}
			return printJSON(c.OutOrStdout(), schema)
		},
	}
	c.Flags().StringVar(&file, "file", "", "only that of parley or of a workspace")
	return c
}

func configCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "config",
		Short:   "Shows the configuration",
		Example: "  parley config show\n  parley config show --channel acme:C06RY3YBSLE",
		Args:    wrong(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(configShowCommand())
	return c
}

func configShowCommand() *cobra.Command {
	var path, channel string
	var asJSON bool
	c := &cobra.Command{
		Use:   "show",
		Short: "Prints each effective value with the file and line that sets it; secrets are masked",
		Long: `Prints each effective value with the file and line that sets it. A secret is a mask, and a value with ${…} is shown as it
is written. With --channel, it prints the values for one channel, such as acme:C06RY3YBSLE, or only C06RY3YBSLE if there is one
workspace; a channel without settings of its own has those of its workspace.`,
		Example: "  parley config show\n  parley config show --channel acme:C06RY3YBSLE --json",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			conf, err := config.Load(path)
			if err != nil {
				return faults(err)
			}
			parts := []shownPart{{"", conf.Main()}}
			for _, w := range conf.Workspaces {
				parts = append(parts, shownPart{w.ID, conf.Effective(w.ID)})
			}
			if channel != "" {
				workspace, id, err := channelRef(conf, channel)
				if err != nil {
					return err
				}
				parts = []shownPart{{workspace, conf.Effective(workspace, id)}}
			}
			return printSettings(c, parts, asJSON)
		},
	}
	configFlag(c, &path, ifExists)
	jsonFlag(c, &asJSON)
	c.Flags().StringVar(&channel, "channel", "", "a channel, as WORKSPACE:CHANNEL or CHANNEL")
	return c
}

// shownPart is the settings of one file.
type shownPart struct {
	workspace string // empty for parley.yaml
	settings  []config.Setting
}

// printSettings prints a line for each setting, or one object a line.
func printSettings(c *cobra.Command, parts []shownPart, asJSON bool) error {
	for i, p := range parts {
		if !asJSON && i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		if !asJSON && p.workspace != "" {
			fmt.Fprintf(c.OutOrStdout(), "workspace %s\n", p.workspace)
		}
		for _, s := range p.settings {
			if !asJSON {
				fmt.Fprintln(c.OutOrStdout(), s)
				continue
			}
			line := struct {
				Workspace string `json:"workspace"`
				config.Setting
			}{p.workspace, s}
			if err := printJSON(c.OutOrStdout(), line); err != nil {
				return err
			}
		}
	}
	return nil
}

// channelRef reads the reference of a channel. Without a workspace, it is that of the only workspace, or of the one whose
// file names the channel.
func channelRef(conf *config.Config, ref string) (workspace, channel string, err error) {
	if id, rest, ok := strings.Cut(ref, ":"); ok && conf.Workspace(id) != nil {
		return id, rest, nil
	}
	named := slices.Clone(conf.Workspaces)
	if len(named) > 1 {
		named = slices.DeleteFunc(named, func(w config.Workspace) bool { _, has := w.Channels[ref]; return !has })
	}
	if len(named) != 1 {
		return "", "", command.UsageError{Err: errors.New("--channel must name the workspace, as in acme:C06RY3YBSLE")}
	}
	return named[0].ID, ref, nil
}
