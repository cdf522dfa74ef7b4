package remote

import "testing"

// TestTokens reads the limit of a server and the length of a request from the words of a refusal, and takes no
// code, date or name of a model for one of them.
func TestTokens(t *testing.T) {
	for words, want := range map[string][2]int{
		"This model's maximum context length is 8192 tokens. However, you requested 10000 tokens (9000 in the messages, 1000 in the completion).":                                                                       {8192, 10000},
		"litellm.BadRequestError: Error code: 400 - model gpt-4-20240613: maximum context length is 131072 tokens. However, your messages resulted in 140000 tokens.":                                                   {131072, 140000},
		"You passed 3000 input tokens and requested 0 output tokens. However, the model's context length is only 2048 tokens, resulting in a maximum input length of 2048 tokens. (parameter=input_tokens, value=3000)": {2048, 3000},
		"prompt is too long: 208310 tokens > 200000 maximum":                                                                           {200000, 208310},
		"request (3000 tokens) exceeds the available context size (2048 tokens), try increasing it":                                    {2048, 3000},
		"greater than the context length (n_keep: 5000>= n_ctx: 2048)":                                                                 {2048, 5000},
		"Trying to keep the first 5000 tokens when context the overflows. The model is loaded with context length of only 2048 tokens": {2048, 5000},
		"Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length (3051)":                {32768, 40000},
		"the input length exceeds the context length of claude-3-5-sonnet-20241022 (code 400)":                                         {},
		"prompt too long; exceeded max context length by 952 tokens":                                                                   {},
	} {
		if limit, asked := tokens(words); limit != want[0] || asked != want[1] {
			t.Errorf("%s: %d of %d", words, limit, asked)
		}
	}
}
