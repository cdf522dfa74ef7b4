// Package cmdline has what the commands of parley share: the daemon that a command asks, flags, and the form of
// what is printed.
package cmdline
