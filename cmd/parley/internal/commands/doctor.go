package commands

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"parley/cmd/parley/internal/doctor"
)

func doctorCommand() *cobra.Command {
	var o doctor.Options
	var asJSON, quiet bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Looks at configuration, store, disk, clock, platforms, agents and files, and says what is wrong",
		Long: `Looks at configuration, store, disk, clock, platforms, agents and files, and says what is wrong.

It asks the running daemon, each platform and each agent, with the cheapest request. It changes nothing; with
--fix, it corrects the modes of files that others can use.

Exit status: 0 without a fault, also with warnings; 1 with one.`,
		Example: "  parley doctor\n  parley doctor --json | jq 'select(.checks[].state == \"fault\")'",
		Args:    wrong(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			o.Now = time.Now
			checks := doctor.Run(c.Context(), o)
			var err error
			switch {
			case asJSON:
				err = printJSON(c.OutOrStdout(), map[string]any{"checks": checks})
			case !quiet:
				err = printChecks(displayOf(c), checks)
			}
			return cmp.Or(err, diagnosis(checks))
		},
	}
	configFlag(c, &o.Config, ifExists)
	jsonFlag(c, &asJSON)
	c.Flags().BoolVarP(&quiet, "quiet", "q", false, "print nothing, only set the exit status")
	c.Flags().BoolVar(&o.Fix, "fix", false, "correct the modes of files, and nothing else")
	return c
}

// diagnosis returns the error of checks with faults.
func diagnosis(checks []doctor.Check) error {
	faults := len(slices.DeleteFunc(slices.Clone(checks), func(c doctor.Check) bool { return c.State != doctor.Fault }))
	if faults == 0 {
		return nil
	}
	return errors.New(count(faults, "fault"))
}

// stateSigns are the signs of a check's state.
var stateSigns = map[doctor.State]cell{doctor.OK: {"✓", green}, doctor.Warning: {"!", yellow}, doctor.Fault: {"✗", red}}

// printChecks prints a line for each check.
func printChecks(out display, checks []doctor.Check) error {
	widest := 0
	for _, c := range checks {
		widest = max(widest, uniseg.StringWidth(c.Name))
	}
	for _, c := range checks {
		at := ""
		if c.Key != "" && c.State != doctor.OK {
			at = " → " + c.Key
		}
		if at != "" && c.File != "" {
			at += fmt.Sprintf(" (%s:%d)", c.File, c.Line)
		}
		sign := stateSigns[c.State]
		if _, err := fmt.Fprintf(out, "%s %s%s  %s%s\n", out.paint(sign.as, sign.text), c.Name, strings.Repeat(" ", widest-uniseg.StringWidth(c.Name)), c.Words, out.paint(dim, at)); err != nil {
			return err
		}
	}
	return nil
}
