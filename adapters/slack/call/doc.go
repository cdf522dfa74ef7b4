// Package call makes the calls of Slack's Web API for the other rooms.
//
// It makes each call once and reports the possible effect of a failed call. After a rate limit, the
// method rests. If a workspace lacks a feature (markdown blocks, streams, the working sign), the
// client remembers that for an hour.
package call
