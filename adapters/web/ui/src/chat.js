// The page /chat: a conversation, and the caller's conversations at its side.
import "./conversation.js"
import { ThreadsApi } from "../sdk/parley.js"

const at = (id) => document.getElementById(id)
const KEY = "parley-token"
const LOADING = "…" // the title of a conversation that is not read yet
const NONE = "No message yet"
const PAGE = 30 // conversations that are listed at once

// A token comes in the fragment, which no server sees, and leaves the address at once. Anybody may have made the
// link, so the page uses the token only after the person has read whose it is.
let given = ""
if (location.hash.length > 1) {
  given = decodeURIComponent(location.hash.slice(1))
  history.replaceState(null, "", location.pathname + location.search)
}
const token = () => sessionStorage.getItem(KEY) ?? ""
const conversation = at("conversation")
conversation.token = token

const api = new ThreadsApi({ token })

function login(refused = "") {
  sessionStorage.removeItem(KEY)
  at("refused").textContent = refused
  at("chat").hidden = true
  at("login").hidden = false
  at("token").focus()
}

at("login").onsubmit = (e) => {
  e.preventDefault()
  sessionStorage.setItem(KEY, at("token").value.trim())
  at("token").value = ""
  open()
}

at("out").onclick = () => {
  sessionStorage.removeItem(KEY)
  location.replace(location.pathname)
}

// menu opens or closes the drawer of a narrow page. While it is open, the keyboard stays in it; a press beside it closes it.
function menu(shown) {
  if (shown === at("chat").classList.contains("listing")) return
  at("chat").classList.toggle("listing", shown)
  at("menu").ariaExpanded = String(shown)
  conversation.inert = shown
  at(shown ? "new" : "menu").focus()
}
at("menu").onclick = () => menu(true)
at("chat").onclick = (e) => {
  if (e.target === e.currentTarget) menu(false)
}
addEventListener("keydown", (e) => e.key === "Escape" && menu(false))

// show shows the conversation of a thread; without one, a new conversation.
function show(thread) {
  menu(false)
  conversation.run = null
  conversation.thread = thread
  current(thread)
  if (!matchMedia("(pointer: coarse)").matches) conversation.focus() // on a phone the keyboard would hide the page
}

// entitle gives the page and its heading the title of the conversation.
function entitle(title) {
  if (title === LOADING) title = ""
  document.title = title ? `${title} – Parley` : "Parley"
  conversation.title = title || "Parley"
}

const chosen = () => at("threads").querySelector("[aria-current] span")

function current(thread) {
  history.replaceState(null, "", thread ? `?thread=${thread}` : location.pathname)
  for (const b of at("threads").querySelectorAll("button")) b.ariaCurrent = b.dataset.thread === thread ? "true" : null
  entitle(chosen()?.textContent)
}

at("new").onclick = () => show("")
conversation.addEventListener("runstart", (e) => {
  const { workflow_id: thread } = e.detail
  at("threads").prepend(entry({ id: thread, created_at: Date.now() }))
  current(thread)
})

conversation.addEventListener("message", ({ detail: m }) => {
  if (m.id && m.message && chosen()?.textContent === NONE) entitle((chosen().textContent = m.message.slice(0, 200)))
})

// entry is a conversation in the list. Its title is the beginning of its first message.
function entry(thread) {
  const [item, button, title, time] = ["li", "button", "span", "small"].map((tag) => document.createElement(tag))
  button.type = "button"
  button.dataset.thread = thread.id
  title.textContent = LOADING
  time.textContent = new Date(thread.created_at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })
  button.onclick = () => show(thread.id)
  button.append(title, time)
  item.append(button)
  api.retrieveMessages(thread.id, { limit: 1 }).then(({ messages: [first] }) => {
    title.textContent = first?.content.slice(0, 200) || first?.attachments?.[0]?.name || NONE
    if (button.ariaCurrent) entitle(title.textContent)
  }, () => (title.textContent = NONE))
  return item
}

async function page(before) {
  const { threads, next } = await api.list({ before, limit: PAGE })
  at("threads").append(...threads.map(entry))
  at("more").hidden = !next
  at("more").onclick = () => page(next)
}

const named = ({ id, name }) => `${name} (${id})`

// link asks whether the page is to be used as the owner of the token of a link.
async function link() {
  const of = (token) => new ThreadsApi({ token }).caller().catch(() => null)
  const [theirs, mine] = await Promise.all([of(given), token() ? of(token()) : null])
  if (!theirs || theirs.id === mine?.id) return open(theirs ? "" : "The link's token is not known here.")
  at("given").textContent = named(theirs)
  at("instead").textContent = mine ? `In this tab you are ${named(mine)} now.` : ""
  at("adopt").textContent = `Continue as ${theirs.name}`
  at("keep").textContent = mine ? `Stay ${mine.name}` : "Use another token"
  at("keep").onclick = () => ((at("link").hidden = true), open())
  at("link").onsubmit = (e) => {
    e.preventDefault()
    sessionStorage.setItem(KEY, given)
    at("link").hidden = true
    open()
  }
  at("link").hidden = false
  at("adopt").focus()
}

async function open(refused = "") {
  if (!token()) return login(refused)
  at("threads").replaceChildren()
  try {
    at("who").title = at("who").textContent = named(await api.caller())
    await page()
  } catch (error) {
    return login(error.status === 401 ? "This token is not known here." : error.message)
  }
  at("login").hidden = true
  at("chat").hidden = false
  show(new URLSearchParams(location.search).get("thread") ?? "")
}
addEventListener("hashchange", () => location.reload())
given ? link() : open()
