// <parley-conversation>: a conversation with an agent of Parley, for any page. See CONVERSATION.md.
import { uuid } from "../sdk/parley.js"
import { Backend } from "./backend.js"
import { Composer } from "./composer.js"
import { Timeline } from "./timeline.js"
import { ANSWER, COMPLETE, ERROR, IDLE, QUESTION, REQUEST_INPUT, STREAMING_CHUNK, TERMINATED } from "./types.js"
import { h, list, part, words } from "./view.js"

const HERE = new URL(import.meta.url)

// The properties of the document with their defaults, and then our own. A null is a callback or an object.
const PROPERTIES = {
  run: null, startWorkflow: null, interactive: true, title: "", placeholder: "Type your message...", startButtonText: "Start Agent",
  initialMessage: "", onClose: null, isModal: false, fullWidth: false, resetWorkflow: null, hideUserInput: false,
  onFilesSelected: null, uploadedFiles: null, onRemoveFile: null, maxFiles: 5, isUploading: false,
  acceptedFileTypes: ".pdf,.doc,.docx,.xls,.xlsx,.ppt,.pptx,.txt,.md,.csv,.json,.xml,.html,.zip,image/*,audio/*,video/*",
  renderDocumentSearch: null, selectedDocuments: null, onRemoveDocument: null, getAttachedDocs: null, onAttachmentsSent: null,
  getMessageContext: null, fusionData: null, inputContainerClassName: "", inputClassName: "",
  server: HERE.origin, token: "", thread: "", maxFileBytes: 20 << 20,
}
const kebab = (name) => name.replace(/[A-Z]/g, (c) => "-" + c.toLowerCase())
const BY_ATTRIBUTE = new Map(Object.keys(PROPERTIES).flatMap((name) => [[name.toLowerCase(), name], [kebab(name), name]]))

/** valueOf returns the value of a property that an attribute gives; its default if there is no attribute. */
function valueOf(name, text) {
  const initial = PROPERTIES[name]
  if (text === null) return initial
  if (typeof initial === "boolean") return text !== "false"
  if (typeof initial === "number") return Number(text) || initial
  if (name === "run" && !text.startsWith("{")) {
    const [workflow_id, run_id] = text.split("/")
    return run_id ? { workflow_id, run_id } : null
  }
  if (typeof initial === "string") return text
  try {
    return JSON.parse(text)
  } catch {
    return initial
  }
}

const idsOf = (run) => run && { workflow_id: run.workflow_id ?? run.workflowId, run_id: run.run_id ?? run.runId }
const same = (a, b) => a?.run_id === b?.run_id && a?.workflow_id === b?.workflow_id

// What the sign of the connection says in each state.
const STATES = { idle: "", connecting: "Connecting…", live: "Live", reconnecting: "Connection lost, reconnecting…", failed: "No connection" }

// The messages of the main workstream that end the agent's silence.
const SPEAKS = [STREAMING_CHUNK, ANSWER, ERROR, REQUEST_INPUT, COMPLETE, IDLE, TERMINATED]

class ParleyConversation extends HTMLElement {
  static observedAttributes = [...BY_ATTRIBUTE.keys()]

  #values = { ...PROPERTIES }
  #changed = new Set(Object.keys(PROPERTIES))
  #parts = null // the nodes; null before the first connection
  #timeline
  #composer
  #backend = null
  #run = null // the run that is shown, as {workflow_id, run_id}
  #asks = false // whether a question waits for an answer
  #heard = false // whether the page has listened to close
  #due = false
  #works = false // whether a run goes on
  #silent = false // whether the agent owes the first words to a question
  #ticks = 0 // the timer of the sign that it works
  #wants = false // whether the page has given the input the focus

  constructor() {
    super()
    this.attachShadow({ mode: "open" })
    for (const name of Object.keys(PROPERTIES)) { // a page may have set it before the element was defined
      if (!Object.hasOwn(this, name)) continue
      const value = this[name]
      delete this[name]
      this[name] = value
    }
  }

  connectedCallback() {
    this.#parts ??= this.#draw()
    this.#update()
  }

  disconnectedCallback() {
    queueMicrotask(() => { // a move within the page is no end
      if (this.isConnected) return
      this.#backend?.close()
      this.#working({ works: false })
      this.#backend = this.#run = null // a connection shows the run again
    })
  }

  attributeChangedCallback(attribute, before, text) {
    const name = BY_ATTRIBUTE.get(attribute)
    if (name === "title" && text === null) return
    this.set(name, valueOf(name, text))
    if (name === "title") this.removeAttribute("title") // it would be a tooltip of the whole conversation
  }

  // React 19 listens to "FilesSelected" if it is given onFilesSelected: such a listener is the callback.
  addEventListener(type, listener, options) {
    if (typeof listener === "function" && PROPERTIES["on" + type] === null) this.set("on" + type, listener)
    else super.addEventListener(type, listener, options)
    if (type !== "close") return
    this.#heard = true
    this.set("onClose", this.onClose)
  }

  removeEventListener(type, listener, options) {
    if (listener && this.#values["on" + type] === listener) this.set("on" + type, null)
    else super.removeEventListener(type, listener, options)
  }

  // onClose is a name of React's own events. It gives the element nothing then, but keeps its properties at the node.
  get #close() { return this.onClose ?? this[Object.keys(this).find((key) => key.startsWith("__reactProps$"))]?.onClose }

  get(name) { return this.#values[name] }

  set(name, value) {
    this.#values[name] = value ?? PROPERTIES[name]
    this.#changed.add(name)
    if (this.#due || !this.#parts) return
    this.#due = true
    queueMicrotask(() => {
      this.#due = false
      if (this.isConnected) this.#update()
    })
  }

  /** fire tells the page of something, by the callback of a property and by an event. */
  fire(type, detail, callback) {
    this.dispatchEvent(new CustomEvent(type, { detail, bubbles: true, composed: true }))
    return this.#values[callback]?.(...(detail === undefined ? [] : [detail]))
  }

  #draw() {
    const style = h("link", { rel: "stylesheet", href: new URL("conversation.css", HERE).href })
    const button = (name, label, onclick) => part("button", name, { onclick, ariaLabel: label, title: label }, label)
    const p = {
      title: part("h2", "title"),
      connection: part("span", "connection", { role: "status" }),
      reset: button("reset", "Start again", () => this.#reset()),
      close: button("close", "Close", () => {
        this.dispatchEvent(new CustomEvent("close")) // a dialog around it must not take this for its own
        this.#close?.()
      }),
      tabs: h("div", { className: "tabs", role: "tablist", ariaLabel: "Workstreams", hidden: true }),
      lists: h("div", { className: "lists" }),
      latest: part("button", "latest", { className: "latest", onclick: () => this.#timeline.toEnd() }, "Newest message ↓"),
      initial: part("div", "initial"),
      working: part("div", "working", { role: "status" }),
    }
    this.#timeline = new Timeline({
      root: p.lists, tabs: p.tabs, env: () => ({ server: this.server, fusionData: this.fusionData }),
      answer: (text, id) => this.#send(text, [], { option_id: id }), act: (node) => this.#act(node),
      shown: () => this.#timeline.asks !== this.#asks ? this.#update() : this.#stops(),
      again: (text, files) => this.#send(text, files),
    })
    this.#composer = new Composer(this, { upload: (file) => this.#backend.upload(file), submit: (text, files) => this.#submit(text, files) })
    this.#composer.stop.onclick = () => this.#backend.stop(this.#run?.run_id, this.#timeline.selected.id).catch((error) => this.#composer.say(error.message))
    p.root = part("section", "conversation", { className: "root", hidden: true }, h("header", {}, p.title, h("slot", { name: "header" }), p.connection, p.reset, p.close),
      p.tabs, h("div", { className: "middle" }, p.initial, p.lists, p.latest), p.working, this.#composer.form)
    this.#composer.drops(p.root)
    style.onload = style.onerror = () => { // it does not show without its style
      p.root.hidden = false
      this.#composer.update() // its size is known now
      if (this.#wants) this.focus()
    }
    this.shadowRoot.append(style, p.root)
    return p
  }

  #connect() {
    return new Backend({
      server: new URL(this.server, location.href).href, token: () => (typeof this.token === "function" ? this.token() : this.token),
      message: (m) => this.#received(m), change: (m) => this.#timeline.add(m),
      state: (state, note) => this.#state(state, note),
      works: (works) => {
        this.#timeline.works(works)
        this.#working({ works })
        this.#stops()
      },
    })
  }

  // stops shows the button Stop while the work goes on that the shown list is of.
  #stops() {
    const { id, state } = this.#timeline.selected
    const works = this.#backend?.isWorkstream(id) ? state === "running" : this.#works
    if (works !== this.#composer.works) this.#composer.update({ works })
  }

  /** focus puts the cursor into the input, also if the style is not there yet. */
  focus(options) {
    this.#wants = this.#parts?.root.hidden ?? true
    this.#composer?.focus(options)
  }

  // working shows, with the seconds, that the agent works before its first words. What comes at once, as from the history, shows no sign.
  #working({ works = this.#works, silent = this.#silent }) {
    this.#works = works
    this.#silent = silent
    const is = works && silent
    if (is === this.#ticks > 0) return
    const { working } = this.#parts
    clearTimeout(this.#ticks)
    working.replaceChildren()
    this.#ticks = 0
    if (!is) return
    const begun = Date.now()
    const seconds = h("span", { ariaHidden: "true" })
    const tick = () => {
      const passed = Math.floor((Date.now() - begun) / 1000)
      if (!working.firstChild) working.append(h("i", { ariaHidden: "true" }), "The agent is thinking…", seconds)
      seconds.textContent = passed ? ` ${passed} s` : ""
      this.#ticks = setTimeout(tick, 1000)
    }
    this.#ticks = setTimeout(tick, 250)
  }

  #received(m) {
    this.#timeline.add(m)
    if ((m.workstream_id || "main") === "main" && (m.type === QUESTION || SPEAKS.includes(m.type))) this.#working({ silent: m.type === QUESTION })
    this.dispatchEvent(new CustomEvent("message", { detail: m }))
  }

  #state(state, note = "") {
    const { connection } = this.#parts
    if (connection.dataset.state !== state) this.dispatchEvent(new CustomEvent("connectionchange", { detail: { state, note } }))
    connection.dataset.state = state
    connection.textContent = [STATES[state], note].filter(Boolean).join(": ")
  }

  // update shows the properties as they are now.
  #update() {
    const changed = this.#changed
    this.#changed = new Set()
    const p = this.#parts
    const isNew = changed.has("run") && !same(idsOf(this.run), this.#run)
    if (!this.#backend || isNew || changed.has("server") || changed.has("thread")) this.#open()
    const starts = !this.#run && !this.thread
    p.title.textContent = this.title || this.#run?.workflow_id || this.thread
    p.root.ariaLabel = this.title || "Conversation"
    p.root.setAttribute("role", "region")
    p.reset.hidden = !this.resetWorkflow
    p.close.hidden = !this.#heard && !this.#close
    p.initial.hidden = !starts || !this.initialMessage
    p.initial.textContent = this.initialMessage
    this.toggleAttribute("data-modal", Boolean(this.isModal))
    this.toggleAttribute("data-full", Boolean(this.fullWidth))
    this.#asks = this.#timeline.asks
    this.#composer.form.hidden = this.hideUserInput || (!this.interactive && !starts && !this.#asks)
    if (changed.has("renderDocumentSearch")) this.#search()
    this.#composer.update({ starts })
  }

  #search() {
    const { search } = this.#composer
    search.replaceChildren()
    const made = this.renderDocumentSearch?.(search)
    if (made instanceof Node && made !== search) search.append(made)
  }

  // open shows the run, or the thread, that the page has given.
  #open() {
    this.#backend?.close()
    this.#backend = this.#connect()
    this.#timeline.clear()
    this.#composer.update({ works: false })
    this.#working({ works: false, silent: false })
    this.#state("idle")
    this.#run = idsOf(this.run)
    if (this.#run || this.thread) this.#backend.open(this.#run?.workflow_id ?? this.thread, this.#run)
  }

  #reset() {
    if (this.fire("resetworkflow", undefined, "resetWorkflow") === false) return
    this.#values.run = null
    this.thread = ""
  }

  async #submit(text, files) {
    const documents = list(this.getAttachedDocs?.()).map((id) => `store:${words(id)}`)
    if (documents.length) text = [text, "Attachments:", ...documents].filter(Boolean).join("\n")
    if (this.#run || this.thread) await this.#send(text, files)
    else await this.#start(text, files)
    if (documents.length || files.length || list(this.uploadedFiles).length) this.fire("attachmentssent", undefined, "onAttachmentsSent")
  }

  async #start(text, files) {
    this.#composer.update({ works: true })
    this.fire("startworkflow", { message: text })
    try {
      const run = this.startWorkflow ? await this.startWorkflow(text || undefined) : await this.#backend.start(text, files, this.getMessageContext?.())
      if (!run) return this.#composer.update({ works: false })
      this.#values.run = this.#run = idsOf(run)
      this.#backend.open(this.#run.workflow_id, this.#run)
      if (files.length && this.startWorkflow) await this.#send("", files)
      this.fire("runstart", this.#run)
    } catch (error) {
      this.#composer.update({ works: false })
      throw error
    }
    this.set("run", this.#run)
  }

  // send shows the message at once: it is for the workstream whose list is shown. If the server does not take it, it stays with a button that sends it again.
  async #send(text, files, more) {
    const id = uuid()
    const workstream = this.#timeline.selected.id
    const tells = this.#backend.isWorkstream(workstream)
    if (tells && files.length) throw new Error("A workstream takes no files.")
    const settle = this.#timeline.sent(id, text, files)
    if (!tells) this.#working({ silent: true })
    const attempt = async () => {
      try {
        const metadata = this.getMessageContext || more ? { ...this.getMessageContext?.(), ...more } : undefined
        if (tells) await this.#backend.tell(workstream, id, text)
        else this.#values.run = this.#run = await this.#backend.send({ id, text, files, metadata }, this.#run?.run_id)
        settle(null)
      } catch (error) {
        settle(error.message, attempt)
      }
    }
    await attempt()
    this.#update()
  }

  // A pressed button of a uiSchema is an event. Unless the page prevents it, its words are the next message, with its action in the metadata. A
  // client cannot prove that an approver pressed it, so an action that needs one stays out.
  #act(node) {
    const { action: a, value } = node
    const text = words(value ?? node.label)
    if (this.dispatchEvent(new CustomEvent("uiaction", { detail: node, bubbles: true, composed: true, cancelable: true })) && text)
      this.#send(text, [], a && !node.approval && !a.approval && { action: { id: a.id ?? a, value: a.value ?? value } })
  }
}

for (const name of Object.keys(PROPERTIES)) {
  Object.defineProperty(ParleyConversation.prototype, name, {
    configurable: true, enumerable: true,
    get() { return this.get(name) },
    set(value) { this.set(name, value) },
  })
}

if (!customElements.get("parley-conversation")) customElements.define("parley-conversation", ParleyConversation)

export { ParleyConversation }
