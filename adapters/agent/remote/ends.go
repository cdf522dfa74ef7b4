package remote

import "strings"

// end is the meaning of a server's word for the end of an answer.
type end int

const (
	endWhole    end = iota
	endLength       // the answer has reached a bound of tokens
	endFiltered     // a filter of the provider has cut it off
	endRefused      // the model has declined to go on
	endPaused       // the provider would go on after a further request
	endLate         // the server's time was over
	endRequests     // the agent has made as many requests to its model as it may
	endBroken       // the server has failed in the middle
)

// ends are the words that do not mean a whole answer, in lower case and with underscores.
var ends = map[string]end{
	// https://agentclientprotocol.com/protocol/prompt-turn#stop-reasons
	"max_turn_requests": endRequests,
	// https://platform.openai.com/docs/api-reference/chat/object
	"length": endLength, "content_filter": endFiltered,
	// https://platform.openai.com/docs/api-reference/responses/object, whose words gateways pass on
	"max_output_tokens": endLength, "incomplete": endLength, "failed": endBroken, "cancelled": endBroken,
	// https://docs.anthropic.com/en/api/handling-stop-reasons
	"max_tokens": endLength, "model_context_window_exceeded": endLength, "pause_turn": endPaused, "refusal": endRefused,
	// https://api-docs.deepseek.com/api/create-chat-completion
	"insufficient_system_resource": endBroken,
	// https://docs.mistral.ai/api
	"model_length": endLength, "error": endBroken,
	// https://github.com/vllm-project/vllm/blob/main/vllm/v1/request.py
	"abort": endBroken,
	// https://docs.bigmodel.cn/api-reference
	"network_error": endBroken, "sensitive": endFiltered,
	// https://ai.google.dev/api/generate-content#FinishReason
	"safety": endFiltered, "recitation": endFiltered, "language": endFiltered, "blocklist": endFiltered, "prohibited_content": endFiltered, "spii": endFiltered,
	"image_safety": endFiltered, "image_prohibited_content": endFiltered, "image_recitation": endFiltered,
	"malformed_function_call": endBroken, "unexpected_tool_call": endBroken, "too_many_tool_calls": endBroken, "malformed_response": endBroken,
	// https://docs.cohere.com/reference/chat
	"error_toxic": endFiltered, "error_limit": endLength, "timeout": endLate,
	// https://cloud.ibm.com/apidocs/watsonx-ai#text-chat
	"time_limit": endLate, "token_limit": endLength,
	// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
	"content_filtered": endFiltered, "guardrail_intervened": endFiltered, "malformed_model_output": endBroken, "malformed_tool_use": endBroken,
}

// endOf returns the meaning of a server's word, in any case. Gateways write further words behind a colon.
func endOf(word string) end {
	word, _, _ = strings.Cut(strings.ToLower(word), ":")
	return ends[strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimSpace(word))]
}

// sentences tell the reader of an answer why it is incomplete.
var sentences = map[end]string{
	endLength:   "The answer ends here because it reached the model's length limit.",
	endFiltered: "The answer ends here because the provider's content filter cut it off.",
	endRefused:  "The answer ends here because the model declined to go on.",
	endPaused:   "The answer ends here because the provider paused it.",
	endRequests: "The answer ends here because the agent reached its limit of requests for one turn.",
	endLate:     "The answer ends here because the server's time for it was over.",
}

// noRoom is the sentence for the people if an answer reached the length limit before its first word.
const noRoom = "Sorry, my answer did not fit into the model's length limit."
