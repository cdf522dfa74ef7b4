// Package daemon wires the parts into one process and owns their lifetime.
//
// # The path of a message
//
// A Slack message that mentions the bot calls these functions, for the first time in this order, from the socket to the
// post. The message begins a thread, the name of its author is known, and its turn waits for further messages; an agent of kind openai
// answers it without a live preview.
//
// Accept: the payload becomes durable.
//
//  1. adapters/slack/live socket.handle: recognises an envelope by its type.
//  2. adapters/slack/live socket.accept: keeps a conversation's order.
//  3. adapters/slack/payload Parse: decodes the payload.
//  4. adapters/slack/live socket.acceptEnvelope: passes the envelope on; Slack gets its acknowledgement after the commit.
//  5. cmd/parley/internal/daemon timed.Accept: measures the durable accept.
//  6. ingest Ingest.Accept: bounds the memory and the time of waiting envelopes.
//  7. ingest Ingest.store: turns a panic of the adapter into a dead letter.
//  8. ingest Ingest.keys: provides our own identity and the types of channels.
//  9. adapters/slack/payload Normalizer.Keys: finds the kind, the dedupe key and the thread.
//  10. ingest Ingest.accept: lets one transaction accept and record the message of an idle thread.
//  11. ingest Ingest.promptEntry: makes the record, if that needs neither the platform nor the store.
//  12. adapters/slack/payload Normalizer.Normalize: makes the event.
//  13. adapters/slack/payload Payload.toMessage: decodes the typed text and resolves names.
//  14. ingest/event Metadata.Validate: checks the contract.
//  15. ingest Ingest.judged: collects the settings and the policy of the channel.
//  16. ingest/journal/record Recorder.AcceptEntry: runs the transaction and returns after its commit.
//  17. ingest/journal/envelopes acceptTx.first: chooses the thread, which may be new.
//
// Record: the envelope becomes a message with a place in its thread, by the same transaction. In a thread that is idle,
// recordTx.recordNew does this. If a thread is not idle, or a lookup takes time, or for any other event, the envelope waits in the store for
// its thread's intake, which is Ingest.thread.
//
//  18. ingest/journal/record recordTx.recordFirst: handles a message that may be the first of its thread.
//  19. ingest gate.decide: decides that the message triggers a run, with a reason.
//  20. ingest/journal/envelopes First.MakeThread: makes the thread, claims it, and makes the turn due.
//  21. ingest/journal/envelopes First.MakeEnvelope: stores the envelope unless its dedupe key is known.
//  22. ingest/journal/messages InsertFirst: stores the message with the first thread_seq.
//  23. ingest/journal/record recordTx.firstMade: completes the result after the commit.
//
// Turn: the agent gets its input and answers.
//
//  24. assembly/turn Runner.Recorded: wakes the thread's turns at the due time.
//  25. assembly/turn Runner.turn: makes an attempt of the thread's next run.
//  26. assembly/turn Runner.begin: begins the run.
//  27. cmd/parley/internal/daemon Daemon.Ready: waits for the thread's missed messages.
//  28. ingest/journal/runs Runs.BeginRun: runs the transaction and returns after its commit.
//  29. ingest/journal/runs beginRunTx.begin: stores the run with the messages of its turn.
//  30. assembly/turn attempt.make: ends the run after the answer or a failure.
//  31. assembly/turn attempt.ask: bounds the time of the run.
//  32. assembly/turn attempt.input: collects the input.
//  33. cmd/parley/internal/daemon Daemon.ReadHistory: passes the read of earlier messages to ingest.
//  34. ingest Ingest.ReadHistory: reads the thread's earlier messages from the platform.
//  35. ingest/journal/runs Runs.Transcript: reads a window of the thread.
//  36. assembly/turn attempt.keepFiles: copies the attachments.
//  37. assembly/turn lines.turn: converts a stored turn.
//  38. assembly Assemble: writes headers and thread-context blocks.
//  39. adapters/deliver Outbox.Show: prepares the live preview and the working sign.
//  40. adapters/agent/openai Agent.Run: sends the input and reads the stream.
//  41. assembly/turn collector.emit: collects the answer within bounds.
//
// Delivery: the answer becomes posts.
//
//  42. assembly/turn attempt.commit: retries while the store is in trouble.
//  43. assembly/turn attempt.posts: stores the agent's files.
//  44. adapters/deliver LivePreview.Format: adds the files and the pace of the channel.
//  45. adapters/slack/send Sender.Format: converts the answer to Slack's dialect and splits it.
//  46. ingest/journal/runs Runs.CommitReply: runs the transaction and returns after its commit.
//  47. ingest/journal/runs endRunTx.store: stores the reply and its deliveries, and ends the run.
//  48. adapters/deliver Outbox.Posted: wakes the thread's deliveries.
//  49. adapters/deliver Outbox.next: takes the first delivery.
//  50. adapters/deliver Outbox.begin: marks the delivery as sending, and as sent after the call.
//  51. adapters/deliver Outbox.put: chooses the call of the platform.
//  52. adapters/slack/send Sender.Send: posts the text with the delivery's key.
//
// Between two stages, a worker of the [work.Scheduler] claims the thread and calls the next
// stage.
package daemon
