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

// TestRefusals reads the causes of refusals from the words of OpenAI, Anthropic, Google, Mistral, DeepSeek,
// xAI, OpenRouter, Databricks, vLLM, SGLang, TGI, llama.cpp, Ollama and LM Studio, and whether they lack the
// system role.
func TestRefusals(t *testing.T) {
	forms := Forms{Messages: Auto, Parameters: []Parameter{NewParameter("stream_options", `stream_option|include_usage`, true), NewParameter("stream", `'stream'|\bstreaming\b`, false)}}
	const noRole refusal = -1 // badRoles without a system role
	for want, refusals := range map[refusal][]string{
		badRoles: {
			"Conversation roles must alternate user/assistant/user/assistant/...",
			"After the optional system message, conversation roles must alternate user and assistant roles except for tool calls and results. at row 189, column 164",
			"After the (optional) system message(s), user and assistant roles should be alternating.",
			"A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.",
			"Unexpected role 'system' after role 'user'",
			"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant",
			"The first message (except the system message) of deepseek-reasoner must be a user message, but an assistant message detected.",
			"\n------------\nWhile executing CallExpression at line 85, column 32 in source:\n...first %}↵            {{- raise_exception('System message must be at the beginnin...\nError: Jinja Exception: System message must be at the beginning.",
			"messages: only one system message is allowed",
		},
		noRole: {
			"System role not supported at row 1, column 96:\n{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate') }}",
			"Developer instruction is not enabled for models/gemma-3-27b-it",
			"Model o1-mini does not support custom system messages",
			"This model doesn't support system messages. Try again without system messages or use a model that supports system messages.",
			"Only user and assistant roles are supported!",
			"body.messages.0.role: Input should be 'user' or 'assistant'",
			"Invalid value: 'system'. Supported values are: 'user' and 'assistant'.",
			"messages[0]: unknown variant `system`, expected `user` or `assistant`",
			"messages[0].role must be one of: user, assistant",
			"role 'system' is invalid",
			"The first message must have the role user",
		},
		tooLong: {
			"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens. (context_length_exceeded)",
			"Your input exceeds the context window of this model. Please adjust your input and try again.",
			"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
			"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
			"The decoder prompt (length 3000) is longer than the maximum model length of 2048. Make sure that `max_model_len` is no smaller than the number of text tokens.",
			"Input prompt (3000 tokens) is too long and exceeds limit of 2048",
			"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4100 `inputs` tokens and 100 `max_new_tokens`",
			"the request exceeds the available context size. try increasing the context size or enable context shift",
			"the input length exceeds the context length",
			"The number of tokens to keep from the initial prompt is greater than the context length.",
			"length of prompt_tokens (163280) must be less than max_seq_len (32768).",
			"This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
			"prompt token count of 132000 exceeds the limit of 128000 (model_max_prompt_tokens_exceeded)",
			"Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)",
			"Prompt exceeds max length",
		},
		badParameter: {
			"body.stream_options.include_usage: Extra inputs are not permitted",
			"The following parameters are not valid: stream_options",
			"Stream option \"include_usage\" not supported",
			"Unsupported value: 'stream' does not support true with this model.",
		},
		noRefusal: {
			"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens",
			"model \"llama3.2\" not found, try pulling it first",
			"the stream ended",
		},
	} {
		for _, words := range refusals {
			got := refusalOf(&Error{Status: 400, said: words}, forms, Form{Images: NewImages(nil, 0, 0)})
			if got == badRoles && lacksSystem(words) {
				got = noRole
			}
			if got != want {
				t.Errorf("%s: %d, want %d", words, got, want)
			}
		}
	}
}
