package record

import (
	"parley/assembly/card"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/outbox"
	"parley/ingest/journal/runs"
)

// Question implements Look.
func (r *recordTx) Question() *runs.Question {
	if r.thread.question == "" {
		return nil
	}
	return runs.QuestionOf(r.Txn, r.thread.question, `state = 'open' AND until_at > $2`, r.now)
}

// CardButton implements Look.
func (r *recordTx) CardButton(id string) (button *card.Press, agent string) {
	if run := runs.CardOf(id); run != "" {
		button = outbox.CardButton(r.Txn, r.claim.Thread, run, id)
		r.Row([]any{&agent}, `SELECT agent FROM runs WHERE id = $1`, run)
	}
	return button, agent
}

// answer stores the answer to the thread's question that a message is; nil for none.
func (r *recordTx) answer(m *messages.Message, a *runs.Answer) {
	if a == nil {
		return
	}
	stored := runs.Answer{Option: a.Option, Message: m.Row}
	if a.Option != "" { // other words stay in the message alone, whose delete blanks them
		stored.Text = a.Text
	}
	r.out.Told = runs.Close(r.Txn, r.thread.question, "answered", r.Pack(stored, false), r.now) || r.out.Told
}

// forget takes the thread's question from its next run.
func (r *recordTx) forget() {
	r.out.Told = runs.Close(r.Txn, r.thread.question, "expired", "", r.now) || r.out.Told
	runs.ForgetQuestion(r.Txn, r.claim.Thread, r.now)
}

// unask closes the question of a run whose post was deleted. The thread's next run has the question
// without an answer, and messages that wait for the answer are due at once.
func (r *recordTx) unask(run string) {
	if run == "" || run != r.thread.question || !runs.Close(r.Txn, run, "expired", "", r.now) {
		return
	}
	r.out.Told = true // the delivery that takes the buttons from other posts
	runs.Hasten(r.Txn, r.claim.Thread, r.now)
}
