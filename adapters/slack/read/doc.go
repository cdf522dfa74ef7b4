// Package read reads Slack: the history of channels and threads, posts of ours whose sending had no
// clear end, files, and names.
package read
