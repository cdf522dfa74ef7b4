package ingest

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"parley/ingest/event"
	"parley/ingest/journal/messages"
	"parley/ingest/journal/record"
	"parley/ingest/journal/strangers"
)

// maxStrangers bounds the open questions about strangers in a workspace, so that many accounts cannot flood the approvers.
const maxStrangers = 20

// strangerText tells a stranger that the message waits.
const strangerText = "I don't know you yet, so I have asked whether I may answer you. If I don't answer within a day, write to me again."

// strangerPrefix begins the ids of the buttons of questions about strangers: "parley-stranger-<question>-<number>".
const strangerPrefix = "parley-stranger-"

// verdicts are the answers to a question about a stranger, in the order of their buttons.
var verdicts = []struct {
	strangers.State
	label string
}{{strangers.Once, "Once"}, {strangers.Always, "Always"}, {strangers.No, "No"}}

// strangerButton returns the id of the button of an answer, by its number from 0.
func strangerButton(question string, n int) string {
	return strangerPrefix + question + "-" + strconv.Itoa(n)
}

// questionOf returns the id of the question about a stranger whose button a message is the press of; empty for none.
func questionOf(m *event.Message) string {
	named, ok := strings.CutPrefix(m.Pressed, strangerPrefix)
	if !ok {
		return ""
	}
	return named[:max(strings.LastIndexByte(named, '-'), 0)]
}

// isAdmitted reports whether an approver has admitted a stranger. An admission of all messages holds only where the policy asks about strangers.
func (g gate) isAdmitted(sender string) bool {
	return sender != "" && (g.guest == sender || g.Policy.Strangers == StrangersAsk && g.admitted[sender]) && !event.IsOperator(sender)
}

func ignoring(reason string) record.Decision {
	return record.Decision{Ignore: true, Trigger: messages.TriggerNone, Reason: reason}
}

// refused decides about a message whose sender or place the policy refuses. A person whom no list admits and whose message would get an answer from
// the agent is a stranger, about whom the approvers of the agent are asked. A program cannot prove who its sender is, nor the
// telephone network, so that neither asks about anybody. An edit asks about nobody either. It is admitted with its message.
func (g gate) refused(m *event.Message, reason string, look record.Look) record.Decision {
	if reason != event.ReasonUserRefused || !isPerson(m) || g.guest != "" || !g.kind.MakesMessage() && g.kind != event.KindEdit {
		return ignoring(reason)
	}
	asks, s := g.Policy.Strangers == StrangersAsk, look.Stranger(m.Metadata.SenderID)
	// An approver may answer a question after a reload that ended the questions. The answer admits the message that waits.
	if !asks && (g.kind == event.KindEdit || !look.Carries(s.Envelope)) {
		return ignoring(reason)
	}
	guest := g
	guest.guest = m.Metadata.SenderID
	d := guest.decide(m, look)
	approvers := UsersIn(g.Approvers(g.Agent))
	switch {
	case s.State == strangers.Always, s.State == strangers.Once && look.Carries(s.Envelope):
		return d
	case !asks, g.kind == event.KindEdit, d.Trigger != messages.TriggerRun && d.Command == "", len(approvers) == 0:
		return ignoring(reason)
	case s.State == strangers.No:
		return ignoring(event.ReasonStrangerNo)
	case s.State == strangers.Asked, s.State != "" && !s.IsSettled():
		return ignoring(event.ReasonStrangerWaits)
	case look.Strangers() >= maxStrangers:
		return ignoring(event.ReasonStrangersFull)
	}
	d = ignoring(event.ReasonStrangerAsked)
	d.Tell = tell(m, strangerText)
	// The id comes from the message, so that a replay has the same.
	id := uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:stranger:"+m.Metadata.SenderID+":"+string(m.Thread)+":"+m.ExternalID)).String()
	d.Asks = &strangers.Stranger{SenderID: m.Metadata.SenderID, Name: m.Metadata.SenderDisplayName, Question: id, Agent: g.Agent, Approvers: approvers}
	return d
}

// decides decides about a pressed button of a question about a stranger. Only the approvers of the agent may press it, whether a list of the
// policy admits them or not. The post of the question shows the answer; nothing of the press is stored.
func (g gate) decides(m *event.Message, question string, look record.Look) record.Decision {
	d := ignoring(event.ReasonAction)
	s := look.StrangerOf(question)
	if g.kind != event.KindAction || s.State != strangers.Asked || len(g.Approvers(s.Agent)) == 0 || !g.approves(s.Agent, m) {
		return d
	}
	for n, verdict := range verdicts {
		if m.Pressed == strangerButton(question, n) {
			d.Decides = &record.Verdict{Question: question, State: verdict.State, By: m.Metadata.SenderID}
		}
	}
	return d
}
