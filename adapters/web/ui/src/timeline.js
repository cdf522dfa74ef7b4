// The messages of a conversation, in a list for each workstream.
import { ANSWER, BATCH_PROGRESS, COMPLETE, ERROR, IDLE, PLAN, QUESTION, REQUEST_INPUT, STREAMING_CHUNK, SYSTEM, TERMINATED, UPDATE } from "./types.js"
import { bar, h, link, list, part, rendered, schema, WEB, words } from "./view.js"

// The kind of a message inside of its article, by type.
const KINDS = ["system", "thought", "plan", "update", "complete", "warning", "error", "answer", "question", "question", "idle", "terminated", "answer", "update"]
// What a screen reader says before a message, by kind.
const SPOKEN = { question: "You: ", answer: "Answer: ", warning: "Warning: ", error: "Error: ", plan: "Plan: ", asked: "Question: " }
const ENDS = { complete: "Completed", idle: "Waiting for you", terminated: "Stopped" }
const STATES = { running: "running", canceling: "stopping", completed: "completed", failed: "failed", timeout: "out of time", canceled: "stopped" }
const BLOCK = 1000 // characters of streamed text that are laid out together
const FRAME = 5 // milliseconds of a frame for messages; the rest is the browser's, which draws them
const NEAR = 20 // the newest messages, which are drawn even if one does not see them

const activityOf = (m) => m.activity_id ?? m.details?.activity_id ?? ""
const lineOf = (text) => words(text).trim().split("\n", 1)[0]

/** stateOf returns the state of a plan's task: done, active, failed, skipped or open. */
function stateOf(task) {
  const state = words(task?.status ?? task?.state).toLowerCase()
  if (task?.done === true || /^(done|complete|success|finish)/.test(state)) return "done"
  if (/^(in.?progress|running|active|working|started)/.test(state)) return "active"
  return /^(fail|error)/.test(state) ? "failed" : /^(skip|cancel)/.test(state) ? "skipped" : "open"
}

export class Timeline {
  #root
  #tabs
  #env
  #answer
  #act
  #shown
  #again
  #streams = new Map()
  #open = new Set() // the articles of questions that wait for an answer
  #asked = new Map() // the articles of messages that were sent from here, by their ids
  #articles = new Map() // of the thread's messages by their ids, and of answers by their runs
  #waiting = [] // messages for the next frame
  #scheduled = false
  #selected = null

  /** root gets the lists and tabs the tabs. env() is the environment of view.js; answer(text, id) answers a question, act(node) is a pressed button of a uiSchema, shown() comes after messages were shown, and again(text, files) asks a question once more. */
  constructor({ root, tabs, env, answer, act, shown, again }) {
    this.#root = root
    this.#tabs = tabs
    this.#env = env
    this.#answer = answer
    this.#act = act
    this.#shown = shown
    this.#again = again
    this.clear()
    new ResizeObserver(() => this.#selected.follows && this.toEnd()).observe(root)
  }

  /** selected is the list that is shown: its id, and the state of its work. */
  get selected() { return { id: this.#selected.id, state: this.#selected.tab.dataset.state } }

  /** asks says whether a question waits for an answer. */
  get asks() { return this.#open.size > 0 }

  clear() {
    this.#selected = null
    this.#streams.clear()
    this.#asked.clear()
    this.#articles.clear()
    this.#open.clear()
    this.#waiting = []
    this.#root.replaceChildren()
    this.#tabs.replaceChildren()
    this.#tabs.hidden = true
    this.#select(this.#stream("main"))
  }

  /** add shows a message, or a change, with the next frame. The chunks of a frame become one, so that a fast stream costs one change and one layout a frame. */
  add(m) {
    const last = this.#waiting.at(-1)
    if (last?.type === STREAMING_CHUNK && m.type === STREAMING_CHUNK && last.workstream_id === m.workstream_id && activityOf(last) === activityOf(m)) {
      this.#waiting[this.#waiting.length - 1] = { ...m, message: last.message + m.message }
    } else this.#waiting.push(m)
    if (!this.#scheduled) this.#schedule()
  }

  #schedule() {
    this.#scheduled = true
    if (document.hidden) setTimeout(() => this.#flush(), 100)
    else requestAnimationFrame(() => this.#flush())
  }

  // flush shows the messages that wait, as many as a frame has time for.
  #flush() {
    const end = performance.now() + FRAME
    let done = 0
    while (done < this.#waiting.length && performance.now() < end) this.#show(this.#waiting[done++])
    this.#waiting.splice(0, done)
    this.#scheduled = false
    if (this.#waiting.length) this.#schedule()
    if (this.#selected.follows) this.toEnd()
    else this.#root.toggleAttribute("data-behind", true)
    this.#shown()
  }

  /** toEnd scrolls to the newest message, and stays there until the person scrolls. */
  toEnd() {
    const { panel } = this.#selected
    this.#selected.follows = true
    panel.scrollTop = panel.scrollHeight
    this.#root.removeAttribute("data-behind")
  }

  /** sent shows a message of this person before the server has it. It returns what to call with an error; null for a success. */
  sent(id, text, files = []) {
    const m = { type: QUESTION, message: text, files, timestamp: Date.now(), details: { ack: id } }
    const s = this.#selected
    for (const open of this.#open) if (s.panel.contains(open)) this.#close(open)
    const article = this.#append(s, m)
    this.#asked.set(id, article)
    article.dataset.state = "sending"
    article.sent = text
    s.asked = m
    this.toEnd()
    return (error, again) => {
      article.dataset.state = error ? "failed" : "sent"
      article.querySelector(".failed")?.remove()
      if (error) article.append(part("div", "error", { className: "failed", role: "alert" }, `${error} `, h("button", { onclick: again }, "Send again")))
    }
  }

  #stream(id) {
    let s = this.#streams.get(id)
    if (s) return s
    const name = id === "main" ? "Main" : id
    const panel = h("div", { className: "list", role: "log", tabIndex: 0, ariaLabel: id === "main" ? "Messages" : `Messages of ${name}`, ariaLive: "polite" })
    const tab = part("button", `workstream-${id}`, { role: "tab", className: "tab" }, h("span", {}, name), h("small"))
    tab.setAttribute("part", `workstream workstream-${id}`)
    s = { id, panel, tab, texts: new Map(), lines: new Map(), answered: false, follows: true }
    panel.onscroll = () => {
      s.follows = panel.scrollHeight - panel.scrollTop - panel.clientHeight < 60
      if (s.follows) this.#root.removeAttribute("data-behind")
    }
    tab.onclick = () => this.#choose(s)
    tab.onkeydown = (e) => this.#turn(e, s)
    this.#streams.set(id, s)
    panel.hidden = this.#streams.size > 1
    this.#root.append(panel)
    this.#tabs.append(tab)
    this.#tabs.hidden = this.#streams.size < 2
    this.#select(this.#selected ?? s)
    return s
  }

  #select(s) {
    this.#selected = s
    for (const o of this.#streams.values()) {
      o.panel.hidden = o !== s
      o.tab.ariaSelected = String(o === s)
      o.tab.tabIndex = o === s ? 0 : -1
    }
    if (s.follows) this.toEnd()
  }

  #choose(s) {
    this.#select(s)
    this.#shown()
  }

  // The arrow keys go from tab to tab.
  #turn(e, s) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[e.key]
    if (!step) return
    const all = [...this.#streams.values()]
    const next = all[(all.indexOf(s) + step + all.length) % all.length]
    this.#choose(next)
    next.tab.focus()
  }

  #mark(s, m) {
    const given = words(m.details?.state ?? m.details?.status)
    const by = { [COMPLETE]: "completed", [ERROR]: "failed", [TERMINATED]: "canceled" }[m.type]
    if (given in STATES) s.told = true // the server tells the states of its workstreams
    const state = given in STATES ? given : s.told ? s.tab.dataset.state : by ?? (s.tab.dataset.state && m.type === SYSTEM ? s.tab.dataset.state : "running")
    const note = [STATES[state], state === "running" && (s.phase = words(m.details?.phase).replaceAll("_", " ") || s.phase)].filter(Boolean).join(", ")
    this.#note(s, state, note)
    const name = words(m.details?.workstream_name ?? m.details?.name)
    if (name && s.id !== "main") s.tab.firstChild.textContent = name
  }

  #note({ tab }, state, note = STATES[state]) {
    if (tab.dataset.state !== state) tab.dataset.state = state
    if (tab.lastChild.textContent !== note) tab.lastChild.textContent = note
  }

  /** works notes whether the thread's own agent works. */
  works(is) {
    const main = this.#stream("main")
    if (is || main.tab.dataset.state === "running") this.#note(main, is ? "running" : "completed")
  }

  #show(m) {
    const known = this.#articles.get(m.id) ?? (m.change && this.#articles.get(m.run))
    if (m.change === "edit") return known && this.#fill(known, m)
    if (m.change === "delete") return known && (this.#open.delete(known), known.remove())
    if (known) return
    const s = this.#stream(m.workstream_id || "main")
    if (m.change) return this.#ends(s, m.change)
    if (m.id && m.type !== QUESTION) { // of the thread
      if (m.type === SYSTEM) s.asked = null
      return this.#append(s, m)
    }
    if (!m.id) this.#mark(s, m)
    if (s.idle && m.type !== IDLE) {
      s.idle.remove()
      s.idle = null
    }
    switch (m.type) {
      case STREAMING_CHUNK: return this.#grow(s, m)
      case UPDATE: case BATCH_PROGRESS: case PLAN: return this.#change(s, m)
      case QUESTION: return this.#question(s, m)
      case COMPLETE: case IDLE: case TERMINATED: return this.#end(s, m)
      default: return this.#whole(s, m)
    }
  }

  // ends ends the texts of a run of a workstream. If its messages come again, the list is emptied but for the task.
  #ends(s, change) {
    for (const t of s.texts.values()) t.article.ariaBusy = null
    s.texts.clear()
    s.lines.clear()
    if (change === "end") return
    for (const article of s.panel.children) this.#open.delete(article)
    s.panel.replaceChildren(...[...s.panel.querySelectorAll(`[data-type="${SYSTEM}"]`)].slice(0, 1))
    s.idle = s.last = null
  }

  #append(s, m) {
    const article = part("article", "message")
    this.#fill(article, m)
    return this.#place(s, article)
  }

  #place(s, article) {
    s.panel.append(article)
    s.panel.children[s.panel.children.length - NEAR]?.classList.add("old")
    return (s.last = article)
  }

  // A chunk grows the text of its activity. The text is in blocks of whole lines, because a browser lays
  // out a whole block for each change in it.
  #grow(s, m) {
    const key = activityOf(m)
    let t = s.texts.get(key)
    if (!t) {
      const body = h("div", { className: "text" })
      const article = part("article", "message", { ariaBusy: "true" }, part("div", "answer", {}, body))
      article.dataset.type = STREAMING_CHUNK
      this.#place(s, article)
      t = { article, body, tail: new Text() }
      body.append(h("div", {}, t.tail))
      s.texts.set(key, t)
    }
    let { message } = m
    for (let cut; (cut = message.indexOf("\n", Math.max(0, BLOCK - t.tail.length))) >= 0; message = message.slice(cut + 1)) {
      t.tail.appendData(message.slice(0, cut))
      t.body.append(h("div", {}, (t.tail = new Text())))
    }
    t.tail.appendData(message)
    if (m.details?.is_final) t.article.ariaBusy = null
  }

  // A whole message takes the place of the text of its activity; without an activity, of the nameless one.
  #whole(s, m) {
    const key = activityOf(m)
    const t = s.texts.get(key) ?? (m.type === ANSWER ? [...s.texts.values()].at(-1) : undefined)
    if (m.type === ANSWER) s.answered = true
    if (!t) return this.#append(s, m)
    for (const [k, v] of s.texts) if (v === t) s.texts.delete(k)
    t.article.ariaBusy = null
    this.#fill(t.article, m)
  }

  // Updates change one line, and a plan changes the plan before it.
  // The progress of a workstream without words is in its tab.
  #change(s, m) {
    if (m.details?.phase && !m.message) return
    const key = `${m.type} ${activityOf(m)}`
    const before = s.lines.get(key)
    const goesOn = m.type === PLAN || activityOf(m) || s.last === before
    if (before && goesOn) this.#fill(before, m)
    else s.lines.set(key, this.#append(s, m))
  }

  #question(s, m) {
    for (const article of this.#open) if (s.panel.contains(article)) this.#close(article)
    // The messages of a workstream have no id of their sender.
    const article = this.#asked.get(m.details?.ack) ?? (s.id !== "main" && [...s.panel.children].find((a) => a.sent === m.message))
    s.asked = m.author?.isMe === false ? null : m
    if (!article) return this.#append(s, m)
    article.dataset.state = "sent"
    article.sent = null
    if (m.id) this.#articles.set(m.id, article)
  }

  // The text that is left at the end is an answer. A COMPLETE with words is one, too, if there is no other.
  #end(s, m) {
    const left = [...s.texts.values()]
    for (const t of left) t.article.ariaBusy = null
    if (m.type === IDLE) return void (s.idle = this.#append(s, m))
    if (m.type === COMPLETE && m.message && !s.answered) {
      const answer = { ...m, type: ANSWER }
      if (left.length) this.#fill(left.at(-1).article, answer)
      else this.#append(s, answer)
      m = { ...m, message: "", html: null }
    }
    s.answered = false
    s.texts.clear()
    s.lines.clear()
    if (m.type === TERMINATED && s.last?.dataset.type === String(ERROR)) return this.#failed(s)
    const waits = m.type === COMPLETE && this.#open.has(s.panel.lastChild) // a run also ends with a question
    const article = this.#append(s, { ...m, waits })
    if (m.type === COMPLETE && !m.message && !waits) article.classList.add("spoken") // the answer shows it
  }

  // A failed run says so by its error, which gets the button that asks the person's question again.
  #failed(s) {
    const { asked } = s
    if (!asked) return
    const files = list(asked.files).map((f) => (f.attachment ? f : { ...f, attachment: f }))
    s.last.firstChild.append(part("button", "again", { onclick: (e) => (e.target.remove(), this.#again(words(asked.message), files)) }, "Try again"))
  }

  #close(article, chosen) {
    this.#open.delete(article)
    for (const option of article.querySelectorAll("[part=option]")) {
      option.disabled = true
      option.ariaPressed = String(option === chosen)
    }
  }

  #fill(article, m) {
    const kind = m.row ? "row" : KINDS[m.waits ? IDLE : m.type] ?? "system"
    article.dataset.type = m.type
    if (m.id) this.#articles.set(m.id, article)
    if (m.run && m.type === ANSWER) this.#articles.set(m.run, article)
    this.#open.delete(article)
    const others = m.author && !m.author.isMe
    article.toggleAttribute("data-others", Boolean(others && m.type === QUESTION))
    const inner = part("div", kind, {}, others ? named(m.author) : h("span", { className: "spoken" }, SPOKEN[m.type === REQUEST_INPUT ? "asked" : kind] ?? ""))
    article.replaceChildren((this[`_${kind}`] ?? this._plain).call(this, inner, m, article))
    if (m.timestamp) article.title = new Date(m.timestamp).toLocaleString()
  }

  _plain(inner, m) {
    this.#body(inner, m)
    return inner
  }

  #body(inner, m) {
    const env = this.#env()
    if (m.html) inner.append(h("div", { className: "rich" }, rendered(m.html, env)))
    else if (m.message) inner.append(h("div", { className: "text" }, words(m.message)))
    const ui = m.details?.uiSchema
    if (ui?.root) inner.append(schema(ui, env, m.type === QUESTION || m.type === SYSTEM ? null : this.#act)) // only an agent's card has buttons
    const files = [...list(m.files), ...list(m.details?.files)]
    if (files.length) inner.append(h("ul", { className: "files" }, ...files.map((f) => h("li", {}, file(f, env)))))
  }

  _system(inner, m) { return m.isReport ? this._thought(inner, m) : this._plain(inner, m) }

  _thought(inner, m) {
    const details = part("details", "thought", {}, h("summary", {}, m.isReport ? "Workstream" : m.details?.tool ? `Tool ${words(m.details.tool)}` : "Thought"))
    this.#body(details, m)
    return details
  }

  _plan(inner, m) {
    const d = m.details
    const tasks = [d?.plan?.tasks, d?.plan, d?.tasks, d?.steps, d].find(Array.isArray) ?? []
    if (m.message) this.#body(inner, { ...m, details: null })
    inner.append(h("ul", { className: "tasks" }, ...tasks.map((t) => {
      const state = stateOf(t)
      return part("li", "task", { "data-state": state }, h("span", {}, words(t?.goal ?? t?.title ?? t?.name ?? t?.content ?? t?.text ?? t)), h("small", {}, state))
    })))
    return inner
  }

  _update(inner, m) {
    const d = m.details
    const max = d?.total ?? d?.max
    const value = d?.completed ?? d?.done ?? d?.current ?? d?.progress
    const text = words(m.message) || words(d?.message)
    inner.append(h("span", {}, text))
    if (m.type === BATCH_PROGRESS) inner.append(h("span", { className: "count" }, max > 0 ? `${words(value) || 0} of ${words(max)}` : ""), h("label", {}, h("span", { className: "spoken" }, text || "Progress"), bar(value, max)))
    return inner
  }

  // A row is a stage of the work that has ended, or a call of a tool.
  _row(inner, { details: d }) {
    const failed = d.status === "failed"
    inner.append(h("span", {}, words(d.tool_name ?? d.stage)), h("small", { "data-state": failed ? "failed" : "done" }, [failed ? "failed" : "done", Number.isFinite(d.latency_ms) && `${(d.latency_ms / 1000).toFixed(1)} s`].filter(Boolean).join(", ")))
    if (d.error) inner.append(h("div", { className: "text" }, words(d.error)))
    this.#body(inner, { details: d })
    return inner
  }

  _question(inner, m, article) {
    this.#body(inner, m)
    if (m.type !== REQUEST_INPUT) return inner
    this.#open.add(article)
    const options = list(m.details?.ux?.options).filter((o) => words(o?.id) && words(o?.label))
    inner.append(h("div", { className: "options", role: "group", ariaLabel: "Answers" }, ...options.map((o) => {
      const e = part("button", "option", { title: words(o.description) }, words(o.label))
      e.onclick = () => {
        this.#close(article, e)
        this.#answer(words(o.label), words(o.id))
        this.#shown()
      }
      return e
    })))
    return inner
  }

  _complete(inner, m) {
    const end = ENDS[inner.dataset.test]
    inner.append(h("span", {}, words(m.message) ? `${end}: ${lineOf(m.message)}` : end))
    return inner
  }

  _idle = this._complete
  _terminated = this._complete
}

// named is the author of a message above it: the name, which people may choose, and the id, which they may not.
function named({ id, name }) {
  return part("div", "author", { className: "author" }, h("bdi", {}, words(name) || words(id)), h("span", { className: "spoken" }, " "), name && id ? h("small", {}, words(id)) : null, h("span", { className: "spoken" }, ": "))
}

/** file is a link to a file of a message: one with an address, or with its bytes; else only its name. */
function file(f, env) {
  const name = words(f?.name ?? f?.filename) || "file"
  const href = f?.url ? link(f.url, env.server, WEB) : null
  if (href) return h("a", { href, target: "_blank", rel: "noopener noreferrer" }, name)
  if (!words(f?.data)) return h("span", {}, name)
  return h("button", { onclick: () => save(name, f.data) }, `Save ${name}`)
}

function save(name, base64) {
  const href = URL.createObjectURL(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]))
  h("a", { href, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(href), 1000)
}
