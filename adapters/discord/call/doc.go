// Package call makes the calls of Discord's REST API for the other rooms.
//
// It makes each call once: discordgo's retries and its waits for rate limits are off. Every call has a
// context. Its error reports the possible effect of the call. After a rate limit, the route rests.
package call
