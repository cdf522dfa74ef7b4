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
//  11. ingest/journal/envelopes Envelopes.Accept: runs the transaction and returns after its commit.
//  12. ingest/journal/envelopes acceptTx.run: decides whether the envelope needs a thread.
//  13. ingest/journal/envelopes acceptTx.place: chooses the thread.
//  14. ingest/journal/envelopes acceptTx.upsertThread: makes the thread, counts the envelope, claims the thread.
//  15. ingest/journal/envelopes acceptTx.insert: stores the envelope unless its dedupe key is known.
//
// Intake: the envelope becomes a message with a place in its thread.
//
//  16. ingest/work Scheduler.Accepted: passes the envelope to the intake of its thread.
//  17. ingest Ingest.thread: takes the envelopes of the thread in order.
//  18. ingest Ingest.envelope: sends a suspect to the serial work queue.
//  19. ingest Ingest.attempt: retries after an error, or makes a dead letter.
//  20. ingest Ingest.entry: collects the settings and the policy of the channel.
//  21. ingest Ingest.normalize: bounds the time of name lookups.
//  22. adapters/slack/payload Normalizer.Normalize: makes the event.
//  23. adapters/slack/payload Payload.toMessage: decodes the typed text and resolves names.
//  24. ingest/event Metadata.Validate: checks the contract.
//  25. ingest Ingest.channel: returns the channel.
//  26. ingest/journal/record Recorder.Record: runs the transaction and returns after its commit.
//  27. ingest/journal/record recordTx.recordNew: handles a message that is not stored yet.
//  28. ingest gate.decide: decides that the message triggers a run, with a reason.
//  29. ingest/journal/record recordTx.insert: stores the message with the next thread_seq.
//  30. ingest/journal/record recordTx.settle: stores the envelope's result.
//  31. ingest/journal/record recordTx.saveThread: makes the turn due.
//
// Turn: the agent gets its input and answers.
//
//  32. assembly/turn Runner.Recorded: wakes the thread's turns at the due time.
//  33. assembly/turn Runner.turn: makes an attempt of the thread's next run.
//  34. assembly/turn Runner.begin: begins the run.
//  35. cmd/parley/internal/daemon Daemon.Ready: waits for the thread's missed messages.
//  36. ingest/journal/runs Runs.BeginRun: runs the transaction and returns after its commit.
//  37. ingest/journal/runs beginRunTx.begin: stores the run with the messages of its turn.
//  38. assembly/turn attempt.make: ends the run after the answer or a failure.
//  39. assembly/turn attempt.ask: bounds the time of the run.
//  40. assembly/turn attempt.input: collects the input.
//  41. cmd/parley/internal/daemon Daemon.ReadHistory: passes the read of earlier messages to ingest.
//  42. ingest Ingest.ReadHistory: reads the thread's earlier messages from the platform.
//  43. ingest/journal/runs Runs.Transcript: reads a window of the thread.
//  44. assembly/turn attempt.keepFiles: copies the attachments.
//  45. assembly/turn lines.turn: converts a stored turn.
//  46. assembly Assemble: writes headers and thread-context blocks.
//  47. adapters/deliver Outbox.Show: prepares the live preview and the working sign.
//  48. adapters/agent/openai Agent.Run: sends the input and reads the stream.
//  49. assembly/turn collector.emit: collects the answer within bounds.
//
// Delivery: the answer becomes posts.
//
//  50. assembly/turn attempt.commit: retries while the store is in trouble.
//  51. assembly/turn attempt.posts: stores the agent's files.
//  52. adapters/deliver LivePreview.Format: adds the files and the pace of the channel.
//  53. adapters/slack/send Sender.Format: converts the answer to Slack's dialect and splits it.
//  54. ingest/journal/runs Runs.CommitReply: runs the transaction and returns after its commit.
//  55. ingest/journal/runs endRunTx.store: stores the reply and its deliveries, and ends the run.
//  56. adapters/deliver Outbox.Posted: wakes the thread's deliveries.
//  57. adapters/deliver Outbox.next: takes the first delivery.
//  58. adapters/deliver Outbox.begin: marks the delivery as sending, and as sent after the call.
//  59. adapters/deliver Outbox.put: chooses the call of the platform.
//  60. adapters/slack/send Sender.Send: posts the text with the delivery's key.
//
// Between two stages, a worker of the [work.Scheduler] claims the thread and calls the next
// stage.
package daemon
