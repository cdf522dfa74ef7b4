package assembly_test

import (
	"fmt"
	"time"

	"parley/assembly"
	"parley/ingest/event"
)

func ExampleAssemble() {
	by := func(id, name string) event.Metadata {
		return event.Metadata{Source: "slack", SenderID: "slack:" + id, SenderDisplayName: name, SenderType: event.Human, MentionToken: "<@" + id + ">"}
	}
	at := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	turn := assembly.Turn{
		Context:  []assembly.Line{{ID: "1", Seq: 1, SentAt: at, Version: 1, Content: "the disk of host-7 is full", Metadata: by("U0MARA", "Mara")}},
		Messages: []assembly.Line{{ID: "2", Seq: 2, SentAt: at.Add(time.Minute), Version: 1, Content: "<@U0BOT> what now?", Metadata: by("U0NORA", "Nora")}},
	}
	for _, m := range assembly.Assemble("helper", []assembly.Turn{turn}, assembly.Window{Turns: 50, Bytes: 100_000, Thread: 20}, nil) {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	// Output:
	// system: [Thread context — prior messages in this thread, newest last]
	// - Mara (<@U0MARA>): the disk of host-7 is full
	// user: [Nora (<@U0NORA>)]: <@U0BOT> what now?
}
