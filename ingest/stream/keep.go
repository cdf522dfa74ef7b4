package stream

// MaxKept is the number of messages that are kept of a run.
const MaxKept = 1000

// rank says which of the older messages of a run go first: those of the lowest rank. Those of the
// highest never go.
type rank int

const (
	passing rank = iota // the agent's words about its work
	other
	lasting // what people and the agent said to each other, and how the run ended
)

func (t Type) rank() rank {
	switch t {
	case StreamingChunk, Thought, Update, Plan, BatchProgress:
		return passing
	case Question, Answer, RequestInput, Error, Complete, Terminated:
		return lasting
	}
	return other
}

// Passing returns the types of the messages that go first, and Lasting those that never go.
func Passing() []Type { return ofRank(passing) }

// Lasting: see Passing.
func Lasting() []Type { return ofRank(lasting) }

func ofRank(r rank) (types []Type) {
	for t := range Type(len(names)) {
		if t.rank() == r {
			types = append(types, t)
		}
	}
	return types
}

// Keep returns the messages of a run that are kept, in their order, and the number of the others.
func Keep[M any](messages []M, of func(M) Type) (kept []M, dropped int) {
	excess, drops := len(messages)-MaxKept, map[rank]int{}
	for _, r := range []rank{passing, other} {
		for _, m := range messages {
			if excess > 0 && of(m).rank() == r {
				drops[r]++
				excess--
			}
		}
	}
	for _, m := range messages {
		if r := of(m).rank(); drops[r] > 0 {
			drops[r]--
			dropped++
			continue
		}
		kept = append(kept, m)
	}
	return kept, dropped
}
