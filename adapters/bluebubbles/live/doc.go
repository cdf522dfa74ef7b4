// Package live receives the messages of a BlueBubbles server, at a hook and by polls.
//
// A webhook is only a hint: the server sends it once, in no order, and often again. So the poller reads the
// rows behind a cursor, which the workspace's state has, and again those of the last minutes, which may
// have changed. The hook reads the rows before its own first, if they were not accepted.
package live
