// The part of a conversation in which a person writes: the text, files and documents.
import { h, list, part, words } from "./view.js"

const size = (bytes) => (bytes < 1 << 20 ? `${Math.ceil(bytes / 1024)} KB` : `${(bytes / (1 << 20)).toFixed(1)} MB`)

/** accepts says whether a file is of one of the types: extensions and MIME types, as in the attribute accept. */
function accepts(file, types) {
  const all = types.toLowerCase().split(",").map((t) => t.trim()).filter(Boolean)
  const name = file.name.toLowerCase()
  return all.length === 0 || all.some((t) => (t.startsWith(".") ? name.endsWith(t) : t.endsWith("/*") ? file.type.startsWith(t.slice(0, -1)) : file.type === t))
}

export class Composer {
  #host
  #upload
  #submit
  #input
  #picker
  #add
  #send
  #start
  #chips
  #fault
  #files = [] // {id, name, size, state, error, attachment}
  #serial = 0

  /** host is the element with its properties. upload(file) returns the attachment of a message, and submit(text, attachments, names) sends. */
  constructor(host, { upload, submit }) {
    this.#host = host
    this.#upload = upload
    this.#submit = submit
    this.#input = part("textarea", "input", { rows: 1, enterKeyHint: "send" })
    this.#picker = part("input", "file", { type: "file", multiple: true, ariaLabel: "Add files", className: "spoken", tabIndex: -1 })
    this.#add = h("button", { className: "add", ariaLabel: "Add files", title: "Add files" }, "+")
    this.#add.setAttribute("part", "add-file")
    this.#send = part("button", "send", { type: "submit" }, "Send")
    this.#start = part("button", "start", { type: "submit" })
    this.stop = part("button", "stop", { hidden: true }, "Stop")
    this.#chips = h("ul", { className: "chips", ariaLabel: "Files of the message" })
    this.#fault = part("p", "error", { className: "fault", role: "alert", hidden: true })
    this.search = h("div", { className: "search" })
    this.form = h("form", { className: "composer" }, this.search, h("slot", { name: "documents" }), this.#fault, this.#chips,
      h("div", { className: "row" }, this.#add, this.#picker, this.#input, this.stop, this.#send, this.#start), h("slot", { name: "footer" }))
    this.#listen()
  }

  #listen() {
    this.form.onsubmit = (e) => {
      e.preventDefault()
      this.deliver()
    }
    this.#add.onclick = () => this.#picker.click()
    this.#picker.onchange = () => {
      this.take([...this.#picker.files])
      this.#picker.value = ""
    }
    this.#input.oninput = () => this.update()
    let sends = false
    this.#input.onkeydown = (e) => {
      sends = e.key === "Enter" && !e.shiftKey && !e.isComposing
      if (!sends) return
      e.preventDefault()
      this.deliver()
    }
    this.#input.onbeforeinput = (e) => void (sends && e.inputType === "insertLineBreak" && e.preventDefault()) // of the same key
    this.#input.onpaste = (e) => e.clipboardData.files.length && (e.preventDefault(), this.take([...e.clipboardData.files]))
  }

  /** drops takes the files that are dropped on a node. */
  drops(on) {
    const over = (is) => (e) => {
      if (![...(e.dataTransfer?.types ?? [])].includes("Files") || this.form.hidden) return
      e.preventDefault()
      on.toggleAttribute("data-over", is)
    }
    on.ondragenter = on.ondragover = over(true)
    on.ondragleave = (e) => on.contains(e.relatedTarget) || over(false)(e)
    on.ondrop = (e) => {
      over(false)(e)
      if (!this.form.hidden && e.dataTransfer.files.length) this.take([...e.dataTransfer.files])
    }
  }

  focus(options) { this.#input.focus(options) }

  /** take adds files to the next message, and says why it takes one not. */
  take(files) {
    const { acceptedFileTypes, maxFiles, maxFileBytes, onFilesSelected } = this.#host
    const faults = []
    const taken = files.filter((f) => {
      if (!accepts(f, acceptedFileTypes)) return void faults.push(`${f.name} is not of an accepted type.`)
      if (f.size > maxFileBytes) return void faults.push(`${f.name} is too large: ${size(f.size)} of at most ${size(maxFileBytes)}.`)
      return true
    })
    const room = Math.max(0, maxFiles - this.#shown().length)
    if (taken.length > room) faults.push(`A message has at most ${maxFiles} files.`)
    this.say(faults.join(" "))
    taken.splice(room)
    if (taken.length === 0) return
    const event = new CustomEvent("filesselected", { detail: taken, bubbles: true, composed: true, cancelable: true })
    const ours = this.#host.dispatchEvent(event)
    if (onFilesSelected) onFilesSelected(taken)
    else if (ours) taken.forEach((f) => this.#load(f))
    this.update()
  }

  async #load(file) {
    const entry = { id: `file-${++this.#serial}`, name: file.name, size: file.size, state: "uploading" }
    this.#files.push(entry)
    this.update()
    try {
      entry.attachment = await this.#upload(file)
      entry.state = "ready"
    } catch (error) {
      entry.state = "failed"
      entry.error = error.message
      this.say(`${file.name} was not sent: ${error.message}`)
    }
    this.update()
  }

  #shown() { return [...list(this.#host.uploadedFiles), ...this.#files] }

  #remove(entry) {
    this.#files = this.#files.filter((f) => f !== entry)
    this.#host.fire("removefile", entry.id, "onRemoveFile")
    this.say("")
    this.#input.focus()
  }

  /** say shows a fault at the input; an empty one hides it. */
  say(fault) {
    this.#fault.hidden = !fault
    this.#fault.textContent = fault
    this.update()
  }

  /** update shows the state of the properties and the files. */
  update({ starts = this.starts, works = this.works } = {}) {
    Object.assign(this, { starts, works })
    const p = this.#host
    const busy = p.isUploading || this.#files.some((f) => f.state === "uploading")
    const some = this.#input.value.trim() || this.#files.some((f) => f.state === "ready") || list(p.uploadedFiles).length
    this.#input.placeholder = this.#input.ariaLabel = p.placeholder
    this.#input.className = p.inputClassName
    this.form.className = `composer ${p.inputContainerClassName}`
    this.#input.setAttribute("part", `input ${p.inputClassName}`)
    this.form.setAttribute("part", `composer ${p.inputContainerClassName}`)
    this.#input.style.height = "auto"
    this.#input.style.height = this.#input.scrollHeight + "px"
    this.#picker.accept = p.acceptedFileTypes
    this.#picker.multiple = p.maxFiles > 1
    this.#start.textContent = p.startButtonText
    this.#start.hidden = !starts
    this.#send.hidden = starts || (works && !some) // Stop has its place
    this.#send.disabled = busy || !some
    this.#start.disabled = busy || !(some || p.startWorkflow)
    this.stop.hidden = !works
    this.form.ariaBusy = String(Boolean(busy))
    this.#chips.replaceChildren(...this.#shown().map((f) => this.#chip(f, "file", () => this.#remove(f))),
      ...list(p.selectedDocuments).map((d) => this.#chip({ ...d, name: words(d?.name ?? d?.title ?? d?.id) }, "document", () => p.fire("removedocument", d.id, "onRemoveDocument"))))
  }

  #chip(f, kind, onclick) {
    const state = words(f.error) ? "failed" : words(f.state ?? f.status)
    const note = [f.size >= 0 ? size(f.size) : "", { uploading: "sending…", failed: "failed" }[state]].filter(Boolean).join(", ")
    const remove = part("button", `remove-${kind}`, { ariaLabel: `Remove ${words(f.name)}`, onclick }, "×")
    return h("li", { className: "chip", "data-state": state }, h("span", {}, words(f.name)), h("small", {}, note), remove)
  }

  /** deliver sends the text with its files. */
  async deliver() {
    this.update()
    if (this.form.hidden || (this.starts ? this.#start : this.#send).disabled) return
    const text = this.#input.value.trim()
    const files = this.#files.filter((f) => f.state === "ready")
    const restore = [this.#input.value, this.#files]
    this.#input.value = ""
    this.#files = []
    this.say("")
    try {
      await this.#submit(text, files)
    } catch (error) {
      if (!this.#input.value) [this.#input.value, this.#files] = restore
      this.say(error.message)
    }
  }
}
