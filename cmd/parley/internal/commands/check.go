package commands

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/doctor"
	"parley/config"
)

func checkCommand() *cobra.Command {
	var path string
	var offline, asJSON bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Reports the faults of the configuration, the store and the address, and asks the platforms and the agents for further faults",
		Example: `  parley check
  parley check --offline --json | jq -r .findings[].words`,
		Args: wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			found, err := check(c, path, offline)
			if err != nil {
				return err
			}
			return found.print(c, asJSON)
		},
	}
	configFlag(c, &path, ifExists)
	c.Flags().BoolVar(&offline, "offline", false, "only read the files")
	jsonFlag(c, &asJSON)
	return c
}

// The levels of a finding.
const (
	levelFault   = "fault"
	levelWarning = "warning"
	levelNote    = "note"
)

// finding is a fault or a warning about a key.
type finding struct {
	Level string `json:"level"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	Key   string `json:"key"`
	Words string `json:"words"`
}

// checked is the result of a check.
type checked struct {
	Sound      bool      `json:"sound"`
	Workspaces int       `json:"workspaces"`
	Agents     int       `json:"agents"`
	Findings   []finding `json:"findings"`
}

// add adds findings of a level.
func (r *checked) add(level string, list ...config.Fault) {
	for _, f := range list {
		r.Findings = append(r.Findings, finding{level, f.File, f.Line, f.Key, f.Words})
	}
}

// check returns every fault of the configuration, and its warnings. It tries the store and the address, and
// asks the platforms, only if the files have no fault.
func check(c *cobra.Command, path string, offline bool) (r checked, err error) {
	r.Findings = []finding{}
	conf, places, err := config.LoadPlaces(path)
	if list, ok := errors.AsType[config.Faults](err); ok {
		r.add(levelFault, list...)
		return r, nil
	}
	if err != nil {
		return r, err
	}
	r.Workspaces, r.Agents = len(conf.Workspaces), len(conf.Agents)
	r.add(levelWarning, conf.Warnings...)
	if !offline {
		r.ask(c, conf, places)
	}
	r.Sound = !slices.ContainsFunc(r.Findings, func(f finding) bool { return f.Level == levelFault })
	return r, nil
}

// ask adds what the files do not show. The faults come last, in the order of files and lines.
func (r *checked) ask(c *cobra.Command, conf *config.Config, places config.Places) {
	var faults config.Faults
	for _, found := range doctor.Ask(c.Context(), conf) {
		one := places.Fault(found.Workspace, found.Key, found.Words)
		switch {
		case found.Fault:
			faults = append(faults, one)
		case found.Unasked, found.Note:
			r.add(levelNote, one)
		default:
			r.add(levelWarning, one)
		}
	}
	slices.SortStableFunc(faults, func(a, b config.Fault) int { return cmp.Or(cmp.Compare(a.File, b.File), a.Line-b.Line) })
	r.add(levelFault, faults...)
}

// print prints the faults, and warnings and notes, which do not prevent a run, to stderr. It returns an error if
// there are faults.
func (r *checked) print(c *cobra.Command, asJSON bool) error {
	faults := 0
	for _, f := range r.Findings {
		to, words := c.ErrOrStderr(), f.Level+": "+f.Words
		if f.Level == levelFault {
			faults++
			to, words = c.OutOrStdout(), f.Words
		}
		if !asJSON {
			fmt.Fprintln(to, config.Fault{File: f.File, Line: f.Line, Key: f.Key, Words: words})
		}
	}
	if asJSON {
		if err := printJSON(c.OutOrStdout(), r); err != nil {
			return err
		}
	}
	if faults > 0 {
		return fmt.Errorf("the configuration has %s", count(faults, "fault"))
	}
	if !asJSON {
		fmt.Fprintf(c.OutOrStdout(), "the configuration is sound: %s, %s\n", count(r.Workspaces, "workspace"), count(r.Agents, "agent"))
	}
	return nil
}
