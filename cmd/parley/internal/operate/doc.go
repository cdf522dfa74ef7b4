// Package operate has the commands that list, show and repair what is stored: dead letters, deliveries, runs, questions and
// threads. They work by the operator API.
package operate

import "github.com/spf13/cobra"

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{deadCommand(), deliveriesCommand(), postCommand(), schedulesCommand(), whyCommand(), runsCommand(), questionsCommand(), tailCommand(), threadsCommand()}
}
