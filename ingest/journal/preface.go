package journal

import (
	"context"
	"encoding/json"
	"fmt"

	"parley/ingest/event"
)

// Preface is what was read of the time before the journal knew a thread: once, for
// the first of its turns, in whose block it stands. It is stored with the thread,
// since a first turn that is interrupted leaves it to the next one.
type Preface struct {
	// Root is the external id of the thread's root.
	Root string `json:"root"`
	// Earlier is how many messages were left out behind it.
	Earlier int `json:"earlier,omitempty"`
	// Gap says that what was said could not be read, or not all of it.
	Gap bool `json:"gap,omitempty"`
	// First and Last are the thread_seqs of what was stored; 0 for nothing.
	First int64 `json:"first,omitempty"`
	Last  int64 `json:"last,omitempty"`
}

// Read is a message that was read from the platform as context.
type Read struct {
	Message *event.Message
	// Agent says that we wrote it: the agent that it counts as.
	Agent    string
	Metadata []byte // that is stored
}

// Knows says whether a message is stored with its content, or was and is deleted;
// where posts is set, also whether it is a post of ours that carries a reply.
func (j *Journal) Knows(ctx context.Context, workspace, externalID string, posts bool) (known bool, err error) {
	query, args := `SELECT 1 FROM messages WHERE workspace = ?1 AND external_id = ?2 AND seq IS NOT NULL`, []any{workspace, externalID}
	if posts {
		query += ` UNION ALL SELECT 1 FROM deliveries WHERE workspace = ?1 AND platform_id = ?2`
	}
	err = j.engine.Read(single(ctx), func(tx Tx) error {
		known, err = tx.Row([]any{new(int64)}, query+` LIMIT 1`, args...)
		return err
	})
	return known, err
}

// SetPreface stores what was read of a thread for its run, in this order. What is
// known stays what it is. Where the thread has a preface already, nothing is stored,
// and the run has that one.
func (j *Journal) SetPreface(ctx context.Context, lease *Lease, run *Run, preface Preface, list []Read) error {
	made, err := write(about(ctx, lease.Key), j, func(tx Tx) (*Preface, error) {
		p := prefacing{recording: recording{
			Entry: Entry{Workspace: run.Workspace, Origin: FromContext}, tx: tx, lease: lease, now: millis(j.now()), out: &Outcome{},
		}, preface: preface}
		return p.store(list)
	})
	if err == nil {
		run.Preface = made
	}
	return err
}

// prefacing is one SetPreface inside its transaction.
type prefacing struct {
	recording
	preface Preface
}

func (p *prefacing) store(list []Read) (*Preface, error) {
	var stored string
	p.thread.id = p.lease.Thread
	if err := lockNow(p.tx, p.lease, []any{&p.thread.nextSeq, &stored}, `next_seq, preface`); err != nil {
		return nil, err
	}
	if stored != "" {
		return readPreface(stored)
	}
	for _, read := range list {
		if err := p.add(read); err != nil {
			return nil, err
		}
	}
	raw, err := json.Marshal(p.preface)
	if err != nil {
		return nil, err
	}
	if p.moved > 0 {
		if err := addPending(p.tx, p.thread.id, p.moved, p.now); err != nil {
			return nil, err
		}
	}
	return &p.preface, p.tx.Later(nil, nil, `UPDATE threads SET next_seq = ?, preface = ? WHERE id = ?`, p.thread.nextSeq, string(raw), p.thread.id)
}

// add stores a message, unless it is known.
func (p *prefacing) add(read Read) error {
	m := read.Message
	known, err := p.tx.Row([]any{new(int64)}, `SELECT id FROM messages WHERE workspace = ? AND external_id = ?`, p.Workspace, m.ExternalID)
	if err != nil || known {
		return err
	}
	row := Message{
		Thread: p.thread.id, Seq: p.takeSeq(), ExternalID: m.ExternalID, SenderID: m.Metadata.SenderID, Author: ByHuman,
		Trigger: TriggerPassive, Content: m.Content, Metadata: read.Metadata, Version: ContractVersion, Origin: FromContext,
		Quotes: Quotes{m.Quoted, m.Forwarded}, Revision: m.Revision, SentAt: m.SentAt, CreatedAt: instant(p.now),
	}
	switch {
	case read.Agent != "":
		row.SenderID, row.Author = "agent:"+read.Agent, ByAgent
	case m.Metadata.SenderType == event.Bot:
		row.Author = ByBot
	}
	if row.SentAt.IsZero() {
		row.SentAt = row.CreatedAt
	}
	if p.preface.First == 0 {
		p.preface.First = row.Seq
	}
	p.preface.Last = row.Seq
	if err := p.insertRow(&row, m.Attachments); err != nil {
		return err
	}
	p.awaited = true // it costs little to look, once for each thread
	return p.admit(m.ExternalID)
}

// readPreface reads a thread's column; nil where nothing was looked for.
func readPreface(column string) (*Preface, error) {
	if column == "" {
		return nil, nil
	}
	p := new(Preface)
	if err := json.Unmarshal([]byte(column), p); err != nil {
		return nil, fmt.Errorf("preface: %w", err)
	}
	return p, nil
}

// notContext is the condition that a message was not read for another turn alone.
const notContext = `origin <> 'context'`

// preface reads what stands before a thread's first turn.
func (t *transcript) preface(p *Preface, turn *Turn) error {
	turn.Gap = p.Gap
	turn.Earlier += p.Earlier
	if p.First == 0 {
		return nil
	}
	read, err := manyLines(t.tx, `thread = ? AND seq BETWEEN ? AND ? AND origin = 'context' AND trigger = 'passive' AND deleted_at = 0
		AND (content <> '' OR files > 0 OR quotes <> '') ORDER BY seq DESC LIMIT CAST(? AS BIGINT)`,
		t.run.Thread, p.First, p.Last, p.Last-p.First+1)
	if err != nil {
		return err
	}
	for i := range read {
		t.bytes += len(read[i].Content)
		if read[i].ExternalID == p.Root {
			turn.Root = &read[i]
		} else {
			turn.Context = append(turn.Context, read[i])
		}
	}
	return nil
}
