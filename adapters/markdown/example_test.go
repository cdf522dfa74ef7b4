package markdown_test

import (
	"fmt"

	"parley/adapters/markdown"
)

// A fence that does not fit into one post is closed and opened again.
func ExampleFormat() {
	answer := "**Two** steps:\n\n```sh\ndf --human-readable\ndu --summarize --human-readable /var/log\nlogrotate --force /etc/logrotate.conf\n```\n"
	for n, post := range markdown.Format(answer, markdown.Slack, 90) {
		fmt.Printf("-- post %d\n%s\n", n+1, post)
	}
	// Output:
	// -- post 1
	// *Two* steps:
	//
	// ```
	// df --human-readable
	// du --summarize --human-readable /var/log
	// ```
	// -- post 2
	// ```
	// logrotate --force /etc/logrotate.conf
	// ```
}
