// Package live receives Slack's events, over Socket Mode or the Events API.
//
// The package opens and maintains the sockets of Socket Mode itself, instead of using
// slack-go's client. That client closes the old socket before it opens the next one,
// may silently lose queued acknowledgements, and neither passes on nor acknowledges an
// event that it can't decode. This package passes each frame unchanged to the durable
// accept, even if it can't decode the frame. It acknowledges a frame only after the durable
// accept, on the socket that carried the frame. If Slack asks for a socket to be
// replaced, the package opens the replacement before it closes the old socket.
package live
