// The page /chat: a conversation, and the caller's conversations at its side.
import "./conversation.js"
import { ThreadsApi } from "../sdk/parley.js"

const at = (id) => document.getElementById(id)
const KEY = "parley-token"
const PAGE = 30 // conversations that are listed at once

// The token comes in the fragment, which no server sees, and leaves the address at once.
if (location.hash.length > 1) {
  sessionStorage.setItem(KEY, decodeURIComponent(location.hash.slice(1)))
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

const menu = (shown) => {
  at("chat").classList.toggle("listing", shown)
  at("menu").ariaExpanded = String(at("chat").classList.contains("listing"))
}
at("menu").onclick = () => menu()
addEventListener("keydown", (e) => e.key === "Escape" && menu(false))

// show shows the conversation of a thread; without one, a new conversation.
function show(thread) {
  menu(false)
  conversation.run = null
  conversation.thread = thread
  current(thread)
}

function current(thread) {
  history.replaceState(null, "", thread ? `?thread=${thread}` : location.pathname)
  for (const b of at("threads").querySelectorAll("button")) b.toggleAttribute("aria-current", b.dataset.thread === thread)
}

at("new").onclick = () => show("")
conversation.addEventListener("runstart", (e) => {
  const { workflow_id: thread } = e.detail
  at("threads").prepend(entry({ id: thread, created_at: Date.now() }))
  current(thread)
})

// entry is a conversation in the list. Its title is the beginning of its first message.
function entry(thread) {
  const [item, button, title, time] = ["li", "button", "span", "small"].map((tag) => document.createElement(tag))
  button.type = "button"
  button.dataset.thread = thread.id
  title.textContent = "…"
  time.textContent = new Date(thread.created_at).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })
  button.onclick = () => show(thread.id)
  button.append(title, time)
  item.append(button)
  api.retrieveMessages(thread.id, { limit: 1 }).then(({ messages: [first] }) => {
    title.textContent = first?.content.slice(0, 200) || first?.attachments?.[0]?.name || "No message yet"
  }, () => (title.textContent = "No message yet"))
  return item
}

async function page(before) {
  const { threads, next } = await api.list({ before, limit: PAGE })
  at("threads").append(...threads.map(entry))
  at("more").hidden = !next
  at("more").onclick = () => page(next)
}

async function open() {
  if (!token()) return login()
  at("threads").replaceChildren()
  try {
    await page()
  } catch (error) {
    return login(error.status === 401 ? "This token is not known here." : error.message)
  }
  at("login").hidden = true
  at("chat").hidden = false
  show(new URLSearchParams(location.search).get("thread") ?? "")
}
addEventListener("hashchange", () => location.reload())
open()
