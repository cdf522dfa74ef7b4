package main

import (
	"encoding/json"
	"io"

	"github.com/spf13/cobra"
)

// quietFlag adds the flag --quiet of a command that shows its progress.
func quietFlag(c *cobra.Command, quiet *bool) {
	c.Flags().BoolVarP(quiet, "quiet", "q", false, "show no progress")
}

// jsonFlag adds the flag --json of a command that prints one object.
func jsonFlag(c *cobra.Command, asJSON *bool) {
	c.Flags().BoolVar(asJSON, "json", false, "print the result as JSON")
}

// printJSON prints one object on a line.
func printJSON(to io.Writer, value any) error {
	encoder := json.NewEncoder(to)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
