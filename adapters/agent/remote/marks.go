package remote

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
)

// markKind is the effect of a mark of a model's template on the text.
type markKind int

const (
	// thinkMark is a pair around a thought: at the beginning of a text, or alone on its lines.
	thinkMark markKind = iota
	// callMark is a pair around the call of a tool, if callMarkup match what is between. The end of the text closes it too.
	callMark
	// wrapMark is a pair around the answer, at the beginning and the end of a text.
	wrapMark
	// endMark is the end of something, if nothing but marks follows in its line.
	endMark
	// beginMark is the begin of the model's own turn, at the beginning of a text or behind an end.
	beginMark
	// askMark is the begin of a turn of the user, which the model makes up: it ends the answer.
	askMark
	// headMark is the begin of a header of harmony: see splitter.head.
	headMark
	// strikeMark is a tag of HTML whose closing tag is not an end.
	strikeMark
	// bareMark is the rest of a header of harmony if a server leaves out its special tokens.
	bareMark
)

// mark is one mark, or a pair of them, without regard to case.
type mark struct {
	kind  markKind
	begin string
	end   string // of a pair
}

// marks are the marks that reach the texts of models. A further one is one line. No mark begins another one.
var marks = []mark{
	// Thinking: DeepSeek, Qwen and many others; MiniMax; Seed; Claude's older prompts; Mistral; Kimi; Cohere; Open Thoughts; Apertus.
	{thinkMark, "<think>", "</think>"},
	{thinkMark, "<thinking>", "</thinking>"},
	{thinkMark, "<reasoning>", "</reasoning>"},
	{thinkMark, "<thought>", "</thought>"},
	{thinkMark, "<mm:think>", "</mm:think>"},
	{thinkMark, "<seed:think>", "</seed:think>"},
	{thinkMark, "<antThinking>", "</antThinking>"},
	{thinkMark, "[THINK]", "[/THINK]"}, // https://docs.mistral.ai/capabilities/reasoning
	{thinkMark, "◁think▷", "◁/think▷"},
	{thinkMark, "<|START_THINKING|>", "<|END_THINKING|>"}, // https://docs.cohere.com/docs/reasoning
	{thinkMark, "<|begin_of_thought|>", "<|end_of_thought|>"},
	{thinkMark, "<|inner_prefix|>", "<|inner_suffix|>"},
	{thinkMark, "<|channel>thought", "<channel|>"}, // https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4

	// Calls of tools: Hermes, Qwen and GLM; Claude's older prompts; MiniMax; Mistral; Llama; DeepSeek; Kimi; Phi; Gemma; Cohere.
	{callMark, "<tool_call>", "</tool_call>"},
	{callMark, "<tool_calls>", "</tool_calls>"},
	{callMark, "<tool_response>", "</tool_response>"},
	{callMark, "<function_call>", "</function_call>"},
	{callMark, "<function_calls>", "</function_calls>"},
	{callMark, "<function=", "</function>"},
	{callMark, "<invoke name=", "</invoke>"},
	{callMark, "<minimax:tool_call>", "</minimax:tool_call>"},
	{callMark, "[TOOL_CALLS]", "[/TOOL_CALLS]"},
	{callMark, "<|python_tag|>", "<|eom_id|>"}, // https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1
	{callMark, "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"},
	{callMark, "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"},
	{callMark, "<｜DSML｜function_calls>", "</｜DSML｜function_calls>"},
	{callMark, "<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"},
	{callMark, "<|tool_call_begin|>", "<|tool_call_end|>"},
	{callMark, "<|tool_call|>", "<|/tool_call|>"},
	{callMark, "<|tool_call>", "<tool_call|>"},
	{callMark, "<|START_ACTION|>", "<|END_ACTION|>"},

	// The answer.
	{wrapMark, "<final>", "</final>"},
	{wrapMark, "<answer>", "</answer>"},
	{wrapMark, "<|START_RESPONSE|>", "<|END_RESPONSE|>"},
	{wrapMark, "<|begin_of_solution|>", "<|end_of_solution|>"},

	// Turns: ChatML, Llama 3, Gemma, Mistral, Phi and GLM, DeepSeek, Cohere, Granite, GPT-2.
	{endMark, "<|im_end|>", ""},
	{endMark, "<|eot_id|>", ""},
	{endMark, "<|eot|>", ""},
	{endMark, "<|end_of_text|>", ""},
	{endMark, "<|endoftext|>", ""},
	{endMark, "<|end_of_turn|>", ""},
	{endMark, "<end_of_turn>", ""},
	{endMark, "<turn|>", ""},
	{endMark, "</s>", ""},
	{endMark, "<eos>", ""},
	{endMark, "<｜end▁of▁sentence｜>", ""},
	{endMark, "<|END_OF_TURN_TOKEN|>", ""},
	{beginMark, "<|im_start|>assistant", ""},
	{beginMark, "<|start_header_id|>assistant<|end_header_id|>", ""},
	{beginMark, "<start_of_turn>model", ""},
	{beginMark, "<|turn>model", ""},
	{beginMark, "<|assistant|>", ""},
	{beginMark, "<｜Assistant｜>", ""},
	{beginMark, "<|CHATBOT_TOKEN|>", ""},
	{beginMark, "<|start_of_role|>assistant<|end_of_role|>", ""},
	{beginMark, "<|begin_of_text|>", ""},
	{beginMark, "<｜begin▁of▁sentence｜>", ""},
	{askMark, "<|im_start|>user", ""},
	{askMark, "<|start_header_id|>user<|end_header_id|>", ""},
	{askMark, "<start_of_turn>user", ""},
	{askMark, "<|turn>user", ""},
	{askMark, "<|user|>", ""},
	{askMark, "<｜User｜>", ""},
	{askMark, "[INST]", ""},
	{askMark, "<|USER_TOKEN|>", ""},
	{askMark, "<|start_of_role|>user<|end_of_role|>", ""},
	{strikeMark, "<s>", ""},

	// Harmony, the template of gpt-oss. https://cookbook.openai.com/articles/openai-harmony
	{headMark, "<|start|>", ""},
	{headMark, "<|channel|>", ""},
	{endMark, "<|message|>", ""},
	{endMark, "<|constrain|>", ""},
	{endMark, "<|end|>", ""},
	{endMark, "<|return|>", ""},
	{endMark, "<|call|>", ""},
	{bareMark, "assistantfinal", ""},
}

// callMarkup match the beginning of a call between its marks, as against the prose about them.
var callMarkup = regexp.MustCompile(`^\s*(?:["\[{<]|[\w.:-]+\s*(?:\[ARGS\]|\[CALL_ID\]|[>({<])|[\w.:-]+[ \t]*\n)`)

// firstBytes are those with which a mark begins, but for the bare ones.
var firstBytes = func() (found [256]bool) {
	for _, m := range marks {
		if m.kind != bareMark {
			found[m.begin[0]] = true
		}
	}
	return found
}()

// known describes each mark and each beginning of a mark. Its keys are in lower case.
var known = func() map[string]knownMark {
	known := map[string]knownMark{}
	for i, m := range marks {
		for _, tag := range []string{m.begin, m.end} {
			tag := string(lower([]byte(tag)))
			for n := range len(tag) {
				known[tag[:n]] = knownMark{at: -1, isPrefix: true}
			}
			known[tag] = knownMark{at: i, isEnd: tag == string(lower([]byte(m.end)))}
		}
	}
	return known
}()

type knownMark struct {
	at       int // of a whole mark; else -1
	isEnd    bool
	isPrefix bool
}

// lower returns a text with its ASCII letters in lower case.
func lower(text []byte) []byte {
	out := bytes.Clone(text)
	for i, b := range out {
		if b >= 'A' && b <= 'Z' {
			out[i] += 'a' - 'A'
		}
	}
	return out
}

// match returns the mark that a text is, or -1, whether it is the end of its pair, and whether a longer text may be a
// mark.
func match(text []byte) (at int, isEnd, prefix bool) {
	m, ok := known[string(lower(text))]
	if !ok {
		return -1, false, false
	}
	return m.at, m.isEnd, m.isPrefix
}

// block is a part of a text whose end decides what it is.
type block struct {
	mark   int
	text   []byte // with the mark that begins it
	inside int    // where the text behind that mark begins
	code   code
	header bool // of harmony, up to <|message|>
	closed bool // the rest of its line decides
}

// maxHeader bounds a header of harmony, in bytes.
const maxHeader = 200

// begin begins a block with a mark.
func (s *splitter) begin(at int, tag []byte) {
	s.block = &block{mark: at, text: bytes.Clone(tag), inside: len(tag), header: marks[at].kind == headMark}
}

// inBlock takes a mark inside a block.
func (s *splitter) inBlock(pieces []piece, at int, isEnd bool, tag []byte) []piece {
	b := s.block
	text := strings.ToLower(string(tag))
	switch kind := marks[b.mark].kind; {
	case b.closed:
		pieces = s.thoughtOf(pieces)
		return s.found(pieces, at, isEnd, tag)
	case b.header && text == "<|message|>":
		return s.head(pieces)
	case b.header && kind == headMark && text != "<|channel|>" && text != "<|constrain|>":
		pieces = s.release(pieces)
		return s.found(pieces, at, isEnd, tag)
	case !b.header && kind == headMark: // the content of a message of harmony
		switch text {
		case "<|start|>", "<|channel|>":
			pieces = s.thoughtOf(pieces)
			return s.found(pieces, at, isEnd, tag)
		case "<|end|>", "<|return|>", "<|call|>":
			return s.thoughtOf(pieces)
		}
	case kind == thinkMark && at == b.mark && isEnd && !b.code.inside():
		b.text = append(b.text, tag...)
		b.closed = true
		return pieces
	case kind == callMark && at == b.mark && isEnd:
		isCall := callMarkup.Match(b.text[b.inside:])
		if b.text = append(b.text, tag...); isCall {
			s.called = true
			return s.thoughtOf(pieces)
		}
		return s.release(pieces)
	}
	for _, c := range tag {
		pieces = s.blockByte(pieces, c)
	}
	return pieces
}

// blockByte takes a byte inside a block.
func (s *splitter) blockByte(pieces []piece, c byte) []piece {
	b := s.block
	switch {
	case b.closed && c == '\n':
		return s.thoughtOf(pieces)
	case b.closed && c != ' ' && c != '\t' && c != '\r', b.header && (c == '\n' || len(b.text) > maxHeader):
		return s.plain(s.release(pieces), c)
	}
	b.text = append(b.text, c)
	if !b.closed {
		b.code.add(c)
	}
	return pieces
}

// head reads a header of harmony: the role, the channel and the receiver of the message behind it. A message to a tool
// or of another channel than final is a thought, and one of a user ends the answer.
func (s *splitter) head(pieces []piece) []piece {
	header := strings.ToLower(string(s.block.text[s.block.inside:]))
	role, channel, hasChannel := strings.Cut(header, "<|channel|>")
	if !hasChannel && strings.EqualFold(string(s.block.text[:s.block.inside]), "<|channel|>") {
		role, channel = "assistant", header
	}
	fields := strings.Fields(role)
	switch {
	case len(fields) > 0 && fields[0] == "user":
		return s.ask(pieces, append(s.block.text, "<|message|>"...))
	case strings.Contains(header, " to="), len(fields) > 0 && fields[0] != "assistant", strings.TrimSpace(channel) != "" && strings.Fields(channel)[0] != "final":
		s.block.header, s.block.inside, s.block.text = false, 0, nil
		if strings.Contains(header, " to=") {
			s.block.text = []byte(strings.TrimSpace(header) + " ")
		}
		return pieces
	}
	s.block, s.pending = nil, nil
	s.cut = true
	if s.state == leading {
		s.again, s.space = true, nil
	}
	return pieces
}

// thoughtOf ends the block: its text is a thought.
func (s *splitter) thoughtOf(pieces []piece) []piece {
	b := s.block
	s.block, s.pending, s.cut = nil, nil, true
	text := string(b.text)
	if m := marks[b.mark]; m.kind == thinkMark {
		text = strings.TrimSpace(text[b.inside:])
		if b.closed {
			text = text[:len(text)-len(m.end)]
		}
	}
	if s.state == leading {
		s.again, s.space = true, nil
	}
	return append(s.flush(pieces), piece{thought, text})
}

// release ends the block: its text is words. The marks in it begin no block.
func (s *splitter) release(pieces []piece) []piece {
	text := s.block.text
	s.block = nil
	before := s.prose
	s.prose = true
	for _, c := range text {
		pieces = s.next(pieces, c)
	}
	s.prose = before
	return pieces
}

// ask ends the answer at a turn of the user.
func (s *splitter) ask(pieces []piece, tag []byte) []piece {
	s.block, s.pending, s.over = nil, nil, true
	return append(s.flush(pieces), piece{over, string(tag)})
}

// isAtStart reports whether the line so far has only white space and marks.
func (s *splitter) isAtStart() bool { return !s.inLine }

// token takes a mark outside code and blocks if its kind has an effect here. It reports whether it took the mark.
func (s *splitter) token(pieces []piece, at int, isEnd bool, tag []byte) (_ []piece, taken bool) {
	switch m := marks[at]; {
	case m.kind == askMark && (s.isAtStart() || len(s.pending) > 0 || !s.spaced):
		return s.ask(pieces, tag), true
	case m.kind == beginMark && (s.state == leading || len(s.pending) > 0):
		s.pending, s.cut = nil, true
		if s.state == leading {
			s.trim, s.space = true, nil
		}
		return pieces, true
	case m.kind == headMark && !s.prose:
		s.begin(at, tag)
		return pieces, true
	case m.kind == strikeMark:
		s.struck++
	case m.kind == bareMark && s.isBare():
		pieces = append(s.flush(pieces), piece{kind: turned})
		s.state, s.again, s.space, s.inLine = leading, true, nil, false
		return pieces, true
	case string(tag) == "</s>" && s.struck > 0:
		s.struck--
	case m.kind == wrapMark && !isEnd && s.state == leading:
		s.wrapped, s.again, s.space, s.cut = at+1, true, nil, true
		return pieces, true
	case m.kind == endMark, m.kind == beginMark, m.kind == wrapMark && isEnd && s.wrapped == at+1, m.kind == callMark && isEnd && (s.called || tag[1] == '|'):
		s.pending = append(s.pending, tag...)
		return pieces, true
	case m.kind == callMark && !isEnd && !s.prose:
		s.begin(at, tag)
		return pieces, true
	}
	return pieces, false
}

// isBare reports whether the words may begin with a message of harmony whose special tokens are left out.
func (s *splitter) isBare() bool {
	return s.state == uncertain && slices.ContainsFunc([]string{"analysis", "commentary"}, func(channel string) bool {
		return len(s.first) >= len(channel) && strings.EqualFold(string(s.first[:len(channel)]), channel)
	})
}
