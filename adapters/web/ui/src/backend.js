// The daemon, as a conversation uses it: the stream of the thread tells of messages, of runs that begin and of workstreams, and the stream of
// each run of its work.
import { ThreadsApi, uuid, WorkflowsApi } from "../sdk/parley.js"
import { ANSWER, COMPLETE, IDLE, QUESTION, SYSTEM, TERMINATED, UPDATE } from "./types.js"

const REST = 30_000 // how long a lost connection rests after the client has given up, or until the machine is online
const FAR = 8e15 // a time in milliseconds after all messages
const PAGE = 500 // the messages of a thread that are shown
const LANES = 3 // the runs of workstreams that are followed at once: a browser has few connections to a server
const STATES = ["failed", "reconnecting", "connecting", "live"]

const rest = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms)
  signal.addEventListener("abort", () => done(clearTimeout(timer)))
  addEventListener("online", done, { once: true, signal })
})

const attachments = (files) => files.map(({ attachment: { url, name } }) => ({ url, name }))

// The stream of a run has all of its messages but the questions and the reports that it answers.
const ofRun = (m) => m.run_id && m.role !== "user" && m.trigger !== "run"

export class Backend {
  #of
  #runs
  #threads
  #thread = ""
  #me // the id of the person
  #seen = new Map() // promises of the ends of runs, by the ids of those that are shown
  #live = new Set() // the ids of the thread's runs that go on
  #asked = new Set() // the ids of this person's messages whose run has not begun
  #last // the id of the newest run
  #links = new Map() // the states of the connections, that of the thread by an empty name
  #work = new Map() // the workstreams by their ids
  #over = new Set() // the ids of those whose end is shown
  #lanes = Array(LANES).fill(Promise.resolve())
  #abort = new AbortController()

  /** of is {server, token(), message(m), change(m), state(name, note), works(is)}; nothing is called after close. */
  constructor(of) {
    const api = { baseUrl: of.server, token: of.token, html: true }
    this.#runs = new WorkflowsApi(api)
    this.#threads = new ThreadsApi(api)
    this.#of = Object.fromEntries(["message", "change", "state", "works"].map((name) => [name, (...given) => this.#closed || of[name](...given)]))
  }

  close() { this.#abort.abort() }

  get #closed() { return this.#abort.signal.aborted }

  #works() { this.#of.works(this.#live.size + this.#asked.size > 0) }

  // link shows the worst state of the connections. A thread without a run that goes on is idle.
  #link(of, state, note = "") {
    this.#links.set(of, of || state !== "live" ? state : "")
    const worst = STATES.find((s) => [...this.#links.values()].includes(s)) ?? "idle"
    this.#of.state(worst, worst === state ? note : "")
  }

  // lasting repeats a stream over lost connections, and returns whether it has come to its end. of names the connection, and early is the
  // number of times that something unknown may still come into being.
  async #lasting(of, stream, early = 0) {
    const { signal } = this.#abort
    const onConnection = ({ state, attempt }) => this.#link(of, { history: "connecting", waiting: "reconnecting" }[state] ?? state, attempt > 1 ? `attempt ${attempt}` : "")
    while (!this.#closed) {
      try {
        await stream({ signal, onConnection })
        this.#link(of)
        return true
      } catch (error) {
        const waits = error.status === 404 && early-- > 0
        if (!error.isPassing && !waits) {
          this.#link(of, of && this.#thread ? "" : "failed", error.message)
          return false
        }
        this.#link(of, waits ? "connecting" : "reconnecting")
        await rest(waits ? 1000 : REST, signal)
      }
    }
    return false
  }

  // stream calls each with the messages of a run, each one once: their times differ.
  #stream(run, each, early) {
    let since = 0
    const heard = (m) => ((since = m.timestamp + 1), each(m))
    return this.#lasting(run.run_id ?? run, (options) => this.#runs.streamMessages(run, heard, since, options), early)
  }

  // begin shows a run of the thread until its end, if it is not shown yet. It returns the promise of whether it was shown.
  #begin(id) {
    if (!this.#seen.has(id)) this.#seen.set(id, this.#show(this.#run(id), id))
    this.#last = id
    return this.#seen.get(id)
  }

  async #show(run, id, early) {
    this.#live.add(id)
    this.#works()
    const shown = await this.#stream(run, (m) => {
      const { type, workstream_id: w, details: d } = m
      if (type === QUESTION && this.#thread) return // the thread has it, too
      if (w !== "main") {
        if (d?.workstream_name && !this.#work.has(w)) this.#work.set(w, { launch_id: w, run_id: id, state: "running" })
        if (type === COMPLETE || type === TERMINATED) this.#over.add(w)
      }
      this.#of.message({ ...this.#by(m), run: id })
    }, early)
    this.#live.delete(id)
    this.#asked.clear()
    this.#works()
    for (const w of this.#work.values()) if (w.run_id === id) this.#child(w)
    return shown
  }

  // child shows the runs of a workstream, if the run above it, which repeats their messages, is over.
  async #child(w) {
    const { launch_id: id, own_run_ids: runs = [] } = w
    if (this.#live.has(w.run_id) || this.#over.has(id)) return
    const lane = parseInt(id.at(-1), 16) % LANES // of a UUID
    if (runs[0] && !runs.some((run) => this.#seen.has(run))) this.#of.change({ change: "clear", workstream_id: id })
    for (const run of runs) if (!this.#seen.has(run)) this.#seen.set(run, (this.#lanes[lane] = this.#lanes[lane].then(() => this.#showChild(id, run))))
    await this.#seen.get(runs.at(-1))
    if (!w.ended_at || this.#over.has(id)) return
    this.#over.add(id)
    this.#of.message({ type: w.state === "completed" ? COMPLETE : TERMINATED, message: w.error, workstream_id: id, details: w })
  }

  async #showChild(id, run) {
    await this.#stream(run, (m) => {
      const isMain = m.workstream_id === "main"
      if (!isMain || ![COMPLETE, TERMINATED, IDLE].includes(m.type)) this.#of.message({ ...this.#by(m), workstream_id: isMain ? id : m.workstream_id })
    })
    this.#of.change({ change: "end", workstream_id: id })
  }

  // by adds the author of a question.
  #by(m) {
    const by = m.type === QUESTION && m.details?.by
    return by ? { ...m, author: this.#author(by.id, by.name) } : m
  }

  #run(id) { return { workflow_id: this.#thread, run_id: id } }

  #author(id, name) { return { id, name, isMe: id === this.#me } }

  // entry is a message of the thread for the timeline.
  #entry({ id, run_id: run, role, content, html, metadata, created_at, attachments: files, sender_id, sender_display_name: name, client_message_id: ack, reason }) {
    const m = { id, run, message: content, html, timestamp: Date.parse(created_at), files, details: { uiSchema: metadata?.uiSchema } }
    const author = this.#author(sender_id, name)
    if (role === "tool" || metadata?.stage === "tool_execution") return { ...m, type: UPDATE, row: true, details: metadata }
    if (role === "user") return { ...m, type: QUESTION, author, details: { ...m.details, ack: author.isMe ? ack : null } }
    if (role === "assistant") return { ...m, type: ANSWER, author: run ? null : author }
    return { ...m, type: SYSTEM, isReport: reason === "workstream", author: name && name !== "Parley" ? { name } : null }
  }

  #say(m, isNew) {
    const entry = this.#entry(m)
    this.#of.message(entry)
    if (!entry.author?.isMe || m.run_id) return
    if (m.trigger === "run") this.#asked.add(m.client_message_id)
    else if (isNew) this.#of.message({ type: SYSTEM, message: `The agent was not asked: ${m.reason}.`, timestamp: entry.timestamp })
    this.#works()
  }

  async #heard(m, kind) {
    if (kind === "run") return void this.#begin(m.run_id)
    if (kind === "edit" || kind === "delete") return this.#of.change({ ...this.#entry(m), change: kind })
    if (kind === "workstream") {
      this.#work.set(m.launch_id, m)
      this.#of.message({ type: UPDATE, message: "", workstream_id: m.launch_id, details: { ...m, workstream_name: m.name || m.agent } })
      return void this.#child(m)
    }
    if (!ofRun(m)) return this.#say(m, true)
    const end = this.#begin(m.run_id)
    if (m.role === "assistant" && !(await end)) this.#say(m)
  }

  /** upload sends a file, and returns the attachment of a message. */
  upload(file) { return this.#runs.uploadFile(file, { signal: this.#abort.signal }) }

  /** start begins a conversation in a new thread, and returns its run. */
  async start(text, files, metadata) {
    if (files.length === 0 && !metadata) return this.#runs.start({ message: text })
    const { id } = await this.#threads.create()
    return this.#post(id, { id: uuid(), text: text || files.map((f) => f.name).join("\n"), files, metadata })
  }

  // post sends a message to a thread without a run. The id of a message is a name of its run.
  async #post(thread, { id, text, files, metadata }) {
    await this.#threads.sendMessage(thread, { content: text, client_message_id: id, metadata, attachments: attachments(files) })
    return { workflow_id: thread, run_id: id }
  }

  /** send sends the next message of the thread, in which a run may have a name, and returns the name of the message's own run. */
  async send(message, name) {
    const { id, text, files, metadata } = message
    const known = this.#last ?? (name && (await this.#idOf(name)))
    if (!known) return this.#post(this.#thread, message)
    await this.#runs.sendSignal(this.#run(known), "UserInput", { message: text, client_message_id: id, metadata, attachments: attachments(files) })
    return this.#run(id)
  }

  /** isWorkstream says whether the messages of a list are those of a workstream that takes words. */
  isWorkstream(id) { return this.#work.has(id) }

  /** tell gives a workstream the words of this person. */
  tell(id, key, message) { return this.#change(id, "messages", { message }, { key }) }

  #change(id, action, body, options) { return this.#runs.changeWorkstream(this.#run(this.#work.get(id).run_id), id, action, body, options) }

  /** stop ends a workstream, or the run of the thread that goes on or is to begin. */
  stop(name, workstream) {
    if (this.#work.has(workstream)) return this.#change(workstream, "terminate")
    return this.#runs.sendSignal(this.#run([...this.#live].at(-1) ?? [...this.#asked].at(-1) ?? name), "Stop")
  }

  // The id of a run, which may have other names; undefined before the run begins.
  #idOf(name) { return this.#runs.page(this.#run(name), FAR).then((page) => page.run_id, () => undefined) }

  /** open shows the newest messages of a thread, from those of a run on if there is one, and those that come. */
  async open(thread, run) {
    this.#thread = thread
    this.#link("", "connecting")
    let seq = -1, order = Promise.resolve()
    const list = async () => {
      this.#me = (await this.#threads.caller()).id
      const { messages } = await this.#threads.retrieveMessages(thread, { before: Number.MAX_SAFE_INTEGER, limit: PAGE, work: true })
      const id = run && (await this.#idOf(run.run_id))
      const first = messages.findIndex((m) => !run || (id && m.run_id === id) || run.run_id === (m.metadata?.run_id ?? m.client_message_id))
      for (const m of first < 0 ? [] : messages.slice(first)) {
        this.#last = m.run_id ?? this.#last
        if (!ofRun(m) || m.run_id !== id) this.#say(m)
        else if (m.role === "assistant") await this.#begin(id) // what follows stands below the run
      }
      if (id) this.#begin(id)
      seq = messages.at(-1)?.thread_seq ?? 0
    }
    const heard = (m, kind) => {
      if (kind === "message") seq = m.thread_seq
      order = order.then(() => this.#closed || this.#heard(m, kind)).catch((error) => this.#link("", "failed", error.message))
    }
    await this.#lasting("", async (options) => {
      try {
        if (seq < 0) await list()
      } catch (error) {
        if (!run || error.status !== 404) throw error
        this.#thread = "" // the person may read the run alone
        this.#link("")
        return this.#show(run, run.run_id, 5)
      }
      return this.#threads.streamMessages(thread, heard, seq, { ...options, work: true })
    })
  }
}
