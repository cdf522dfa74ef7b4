// Package cmdline has the common parts of parley's commands: the connection to the daemon, flags, and the form of the
// output.
package cmdline
