package commands

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"parley/ingest/journal/sqlite"
)

// version is the release of this source. A release build sets it with -ldflags "-X parley/cmd/parley/internal/commands.version=…".
var version = "0.1.0"

// built describes the program.
type built struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Go       string `json:"go"`
	Platform string `json:"platform"` // the operating system and the architecture
	Schema   int    `json:"schema"`   // of the journal
}

// thisProgram returns the description of this program.
func thisProgram() built {
	return built{version, commit(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH, len(sqlite.Steps())}
}

// String returns the description as one line.
func (b built) String() string {
	return fmt.Sprintf("parley %s, commit %s, %s, %s, schema %d", b.Version, b.Commit, b.Go, b.Platform, b.Schema)
}

func versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Prints version, commit, Go version, platform and the schema of the journal",
		Example: "  parley version\n  parley version --json | jq -r .schema",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(c.OutOrStdout(), thisProgram())
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), thisProgram())
			return err
		},
	}
	jsonFlag(c, &asJSON)
	return c
}

// release returns the release and the commit in words.
func release() string { return version + " (" + commit() + ")" }

// commit returns the revision from which the binary was built, or "unknown".
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
