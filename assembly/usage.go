package assembly

import (
	"cmp"
	"encoding/json"
)

// Tokens returns the counts of a server's usage, a JSON object; 0 for those that it lacks. Protocols name them differently, and some gateways
// write the names of two. The tokens that a server has read from its cache, or written to it, are part of the input.
func Tokens(usage []byte) (in, out int64) {
	var counts map[string]any
	_ = json.Unmarshal(usage, &counts) // a usage of another form has no counts
	sum := func(keys ...string) (n int64) {
		for _, key := range keys {
			count, _ := counts[key].(float64)
			n += int64(max(0, min(count, 1<<40)))
		}
		return n
	}
	return cmp.Or(sum("prompt_tokens"), sum("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"), sum("inputTokens")),
		cmp.Or(sum("completion_tokens"), sum("output_tokens"), sum("outputTokens"))
}
