// The daemon, as a conversation uses it: its runs are followed one after the other.
import { ThreadsApi, uuid, WorkflowsApi } from "../sdk/parley.js"
import { ANSWER, QUESTION, SYSTEM } from "./types.js"

const REST = 30_000 // how long a lost connection rests after the client has given up, or until the machine is online
const FAR = 8e15 // a time in milliseconds after all messages
const PAGE = 500 // the messages of a thread that are shown

const rest = (ms, signal) => new Promise((done) => {
  const timer = setTimeout(done, ms)
  signal.addEventListener("abort", () => done(clearTimeout(timer)))
  addEventListener("online", done, { once: true, signal })
})

// The types of messages by their role in a thread.
const TYPES = { user: QUESTION, assistant: ANSWER, tool: ANSWER, system: SYSTEM }

const attachments = (files) => files.map(({ attachment: { url, name } }) => ({ url, name }))

export class Backend {
  #of
  #runs
  #threads
  #queue = [] // the runs that are to be shown
  #shown = new Set() // the ids of the runs that were shown
  #drains = false
  #caller = null // a promise of who the person is: {id, name}
  #abort = new AbortController()

  /** of is {server, token(), message(m), state(name, note), works(is)}; nothing is called after close. */
  constructor(of) {
    const api = { baseUrl: of.server, token: of.token, html: true }
    this.#runs = new WorkflowsApi(api)
    this.#threads = new ThreadsApi(api)
    this.#of = Object.fromEntries(["message", "state", "works"].map((name) => [name, (...given) => this.#closed || of[name](...given)]))
  }

  close() { this.#abort.abort() }

  get #closed() { return this.#abort.signal.aborted }

  /** follow shows a run after those that are shown already. */
  follow(run) {
    this.#queue.push(run)
    if (!this.#drains) this.#drain()
  }

  // author returns who wrote a message, and whether that is this person. Without an answer of the server, nobody is.
  #authors() {
    this.#caller ??= this.#threads.caller().catch(() => void (this.#caller = null))
    return this.#caller.then((me) => (id, name) => ({ id, name, isMe: id === me?.id }))
  }

  async #drain() {
    this.#drains = true
    this.#of.works(true)
    while (this.#queue.length && !this.#closed) await this.#show(this.#queue.shift())
    this.#drains = false
    this.#of.works(false)
  }

  // show shows a run until its end. Messages that were sent one after the other may have the same run.
  async #show(run) {
    const id = this.#shown.size && (await this.#idOf(run))
    if (id && this.#shown.has(id)) return
    const { signal } = this.#abort
    const author = await this.#authors()
    let time = 0, edge = new Set() // edge has the messages of the very time, which come again after a rest
    const message = (m, compact) => {
      const raw = JSON.stringify(compact)
      if (m.timestamp === time && edge.has(raw)) return
      if (m.timestamp !== time) [time, edge] = [m.timestamp, new Set()]
      edge.add(raw)
      const by = m.type === QUESTION && m.details?.by
      this.#of.message(by ? { ...m, author: author(by.id, by.name) } : m)
    }
    const onConnection = ({ state, attempt, error }) => {
      const name = { history: "connecting", waiting: "reconnecting" }[state] ?? state
      this.#of.state(name === "ended" ? "idle" : name, attempt > 1 ? `attempt ${attempt}` : "", error)
    }
    for (let unknown = 0; !this.#closed; ) {
      try {
        await this.#runs.streamMessages(run, message, time, { signal, onConnection })
        break
      } catch (error) {
        if (this.#closed) return
        const early = error.status === 404 && unknown++ < 5 // the message of the run may not be recorded yet
        if (!error.isPassing && !early) return this.#of.state("failed", error.message)
        this.#of.state(early ? "connecting" : "reconnecting")
        await rest(early ? 1000 : REST, signal)
      }
    }
    if (!this.#closed) this.#shown.add(await this.#idOf(run))
  }

  // The id of a run, which may have other names; undefined before the run begins.
  #idOf(run) {
    return this.#runs.page(run, FAR).then((page) => page.run_id, () => undefined)
  }

  /** upload sends a file, and returns the attachment of a message. */
  upload(file) { return this.#runs.uploadFile(file, { signal: this.#abort.signal }) }

  /** start begins a conversation in a new thread, and returns its run. */
  async start(text, files, metadata) {
    if (files.length === 0 && !metadata) return this.#runs.start({ message: text })
    const { id } = await this.#threads.create()
    return this.#post(id, { id: uuid(), text: text || files.map((f) => f.name).join("\n"), files, metadata })
  }

  // post sends a message to a thread without a known run. The id of a message is a name of its run.
  async #post(thread, { id, text, files, metadata }) {
    await this.#threads.sendMessage(thread, { content: text, client_message_id: id, metadata, attachments: attachments(files) })
    return { workflow_id: thread, run_id: id }
  }

  /** send sends the next message of a run's thread, and shows its run. It returns that run, or a note if there is none. */
  async send(run, message) {
    const { id, text, files, metadata } = message
    const known = run.run_id && (await this.#idOf(run))
    let next
    if (!known) next = await this.#post(run.workflow_id, message)
    else {
      const { thread_id, message: m } = await this.#runs.sendSignal({ workflow_id: run.workflow_id, run_id: known }, "UserInput", { message: text, client_message_id: id, metadata, attachments: attachments(files) })
      if (m.trigger && m.trigger !== "run" && !m.run) return { note: `The agent was not asked: ${m.reason}.` }
      next = { workflow_id: thread_id, run_id: id }
    }
    this.follow(next)
    return next
  }

  async stop(run) { return this.#runs.sendSignal({ workflow_id: run.workflow_id, run_id: (await this.#idOf(run)) ?? run.run_id }, "Stop") }

  /** open shows the newest messages of a thread, and follows its last run. It returns that run; null for none. */
  async open(thread) {
    this.#of.state("connecting")
    try {
      const { messages } = await this.#threads.retrieveMessages(thread, { before: Number.MAX_SAFE_INTEGER, limit: PAGE })
      const [author, { participants }] = await Promise.all([this.#authors(), this.#threads.retrieve(thread)])
      const names = new Map(participants.map(({ id, name }) => [id, name]))
      const last = messages.findLastIndex((m) => m.role === "user")
      const works = last >= 0 && last === messages.length - 1
      const name = messages[last]?.metadata?.run_id ?? messages[last]?.client_message_id
      for (const m of works && name ? messages.slice(0, last) : messages) {
        this.#of.message({
          type: TYPES[m.role] ?? SYSTEM, author: m.role === "user" || m.role === "assistant" ? author(m.sender_id, names.get(m.sender_id)) : null,
          message: m.content, html: m.html, timestamp: Date.parse(m.created_at), files: m.attachments, details: { uiSchema: m.metadata?.uiSchema },
        })
      }
      this.#of.state("idle")
      const run = name ? { workflow_id: thread, run_id: name } : null
      if (works && run) this.follow(run)
      return run
    } catch (error) {
      this.#of.state("failed", error.message)
      return null
    }
  }
}
