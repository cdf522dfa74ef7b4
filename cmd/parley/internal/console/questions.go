package console

import (
	"slices"
	"strings"

	"parley/cmd/parley/internal/operator"
	"parley/ingest/stream"
)

// question is an open question with the answers that the caller may give.
type question struct {
	operator.Question
	Acts []act
	// Hidden tells that the caller may not read it.
	Hidden bool
	// Plan is what the agent gives with it, a line for each member; empty for nothing.
	Plan string
}

// The ids and labels of options that allow and that refuse.
var (
	allows  = []string{"approve", "approved", "allow", "yes", "accept", "ok"}
	refuses = []string{"reject", "rejected", "deny", "denied", "no", "refuse", "decline"}
)

func questions(s *operator.Service, r request) (string, any, error) {
	list, err := s.Questions(r.Context(), r.by, r.page())
	items := make([]question, len(list.Items))
	for i, q := range list.Items {
		items[i] = question{Question: q, Acts: actsOf(q), Hidden: q.Text == "" && !r.by.ReadsAll()}
		if q.Details != nil {
			items[i].Plan = pretty(new(string(q.Details)))
		}
	}
	return "Approvals", struct {
		Items []question
		Next  neighbours
	}{items, r.beside(list.Next)}, err
}

// actsOf returns an operation for each option of a question, or one for an answer in other words.
func actsOf(q operator.Question) (acts []act) {
	const seen = " People see it in the thread, below the question, which loses its buttons. The agent goes on."
	path := "/approvals/" + q.Run + "/answer"
	for _, o := range q.Options {
		words := "The question is answered with “" + o.Label + "”." + seen
		if q.Approval && kindOf(o) == "approve" {
			words = "The agent may do what it asks for. The question is answered with “" + o.Label + "”." + seen
		}
		acts = append(acts, newAct(q.MayAnswer, kindOf(o), path, o.Label, words, []field{{Name: "option", Value: o.ID, Hidden: true}}))
	}
	if !q.Approval || len(q.Options) == 0 {
		acts = append(acts, newAct(q.MayAnswer, "answer", path, "Answer in words", "The agent gets your words as the answer."+seen, []field{{Name: "text", Label: "Answer", Required: true}}))
	}
	return acts
}

// kindOf returns approve, reject or option.
func kindOf(o stream.Option) string {
	is := func(words []string) bool {
		return slices.Contains(words, strings.ToLower(o.ID)) || slices.Contains(words, strings.ToLower(o.Label))
	}
	switch {
	case is(allows):
		return "approve"
	case is(refuses):
		return "reject"
	}
	return "option"
}

func answerQuestion(s *operator.Service, f form) (string, error) {
	made, err := s.Answer(f.Context(), f.write(), f.PathValue("id"), operator.Answer{Option: f.PostFormValue("option"), Text: f.PostFormValue("text")})
	if made.State == operator.Pending {
		return "The answer waits until a node has recorded it.", err
	}
	return "The question is answered, and the agent goes on.", err
}
