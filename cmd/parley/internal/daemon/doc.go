// Package daemon wires the parts into one process and owns their lifetime.
//
// # The path of a message
//
// A Slack message that mentions the bot passes these functions, in this order and each
// once, from the socket to the post. The path shows a new message whose turn waits for
// further messages; an agent of kind openai answers it without a live preview.
//
// Accept: the payload becomes durable.
//
//  1. adapters/slack/live socket.read: reads a frame from the socket.
//  2. adapters/slack/live socket.handle: recognises an envelope by its type.
//  3. adapters/slack/live socket.accept: keeps a conversation's order.
//  4. adapters/slack/payload Parse: decodes the payload.
//  5. adapters/slack/live socket.acceptEnvelope: passes the envelope on; Slack gets its acknowledgement after the commit.
//  6. cmd/parley/internal/daemon timed.Accept: measures the durable accept.
//  7. ingest Ingest.Accept: bounds the memory and the time of waiting envelopes.
//  8. ingest Ingest.store: turns a panic of the adapter into a dead letter.
//  9. ingest Ingest.keys: provides our own identity and the types of channels.
//  10. adapters/slack/payload Normalizer.Keys: finds the kind, the dedupe key and the thread.
//  11. ingest Ingest.accept: lets one transaction accept and record the message of an idle thread.
//  12. ingest Ingest.promptEntry: makes the record, if that needs neither the platform nor the store.
//  13. adapters/slack/payload Normalizer.Normalize: makes the event.
//  14. adapters/slack/payload Payload.toMessage: decodes the typed text and resolves names.
//  15. ingest/event Metadata.Validate: checks the contract.
//  16. ingest Ingest.judged: collects the settings and the policy of the channel.
//  17. ingest/journal/record Recorder.AcceptEntry: runs the transaction and returns after its commit.
//  18. ingest/journal/envelopes acceptTx.run: decides whether the envelope needs a thread.
//  19. ingest/journal/envelopes acceptTx.place: chooses the thread.
//  20. ingest/journal/envelopes acceptTx.upsertThread: makes the thread, counts the envelope, claims the thread.
//  21. ingest/journal/envelopes acceptTx.insert: stores the envelope unless its dedupe key is known.
//
// Record: the envelope becomes a message with a place in its thread. If the thread is not idle, or a lookup takes
// time, or for any other event, the envelope waits in the store for its thread's intake, which is Ingest.thread.
//
//  22. ingest/journal/record recordTx.recordNew: handles a message that is not stored yet.
//  23. ingest gate.decide: decides that the message triggers a run, with a reason.
//  24. ingest/journal/record recordTx.insert: stores the message with the next thread_seq.
//  25. ingest/journal/record recordTx.settle: stores the envelope's result.
//  26. ingest/journal/record recordTx.saveThread: makes the turn due.
//
// Turn: the agent gets its input and answers.
//
//  27. assembly/turn Runner.Recorded: wakes the thread's turns at the due time.
//  28. assembly/turn Runner.turn: makes an attempt of the thread's next run.
//  29. assembly/turn Runner.begin: begins the run.
//  30. cmd/parley/internal/daemon Daemon.Ready: waits for the thread's missed messages.
//  31. ingest/journal/runs Runs.BeginRun: runs the transaction and returns after its commit.
//  32. ingest/journal/runs beginRunTx.begin: stores the run with the messages of its turn.
//  33. assembly/turn attempt.make: ends the run after the answer or a failure.
//  34. assembly/turn attempt.ask: bounds the time of the run.
//  35. assembly/turn attempt.input: collects the input.
//  36. cmd/parley/internal/daemon Daemon.ReadHistory: passes the read of earlier messages to ingest.
//  37. ingest Ingest.ReadHistory: reads the thread's earlier messages from the platform.
//  38. ingest/journal/runs Runs.Transcript: reads a window of the thread.
//  39. assembly/turn attempt.keepFiles: copies the attachments.
//  40. assembly/turn lines.turn: converts a stored turn.
//  41. assembly Assemble: writes headers and thread-context blocks.
//  42. adapters/deliver Outbox.Show: prepares the live preview and the working sign.
//  43. adapters/agent/openai Agent.Run: sends the input and reads the stream.
//  44. assembly/turn collector.emit: collects the answer within bounds.
//
// Delivery: the answer becomes posts.
//
//  45. assembly/turn attempt.commit: retries while the store is in trouble.
//  46. assembly/turn attempt.posts: stores the agent's files.
//  47. adapters/deliver LivePreview.Format: adds the files and the pace of the channel.
//  48. adapters/slack/send Sender.Format: converts the answer to Slack's dialect and splits it.
//  49. ingest/journal/runs Runs.CommitReply: runs the transaction and returns after its commit.
//  50. ingest/journal/runs endRunTx.store: stores the reply and its deliveries, and ends the run.
//  51. adapters/deliver Outbox.Posted: wakes the thread's deliveries.
//  52. adapters/deliver Outbox.next: takes the first delivery.
//  53. adapters/deliver Outbox.begin: marks the delivery as sending, and as sent after the call.
//  54. adapters/deliver Outbox.put: chooses the call of the platform.
//  55. adapters/slack/send Sender.Send: posts the text with the delivery's key.
//
// Between two stages, a worker of the [work.Scheduler] claims the thread and calls the next
// stage.
package daemon
