// Nodes for what agents say. Every text from outside becomes a text node or the value of an allowed attribute.

const DEPTH = 64 // of nested elements that are shown

/** h makes an element. A property that the element has is set, any other one becomes an attribute; null leaves it out. */
export function h(tag, props = {}, ...children) {
  const e = document.createElement(tag)
  if (tag === "button") e.type = tag // unless props has another one
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined) continue
    if (key in e) e[key] = value
    else e.setAttribute(key, value)
  }
  e.append(...children.filter((c) => c !== null && c !== undefined))
  return e
}

/** part makes an element that pages can style and tests can find by name. */
export const part = (tag, name, props, ...children) => {
  const e = h(tag, props, ...children)
  e.setAttribute("part", name)
  e.dataset.test = name
  return e
}

/** WEB are the schemes of files and pages. */
export const WEB = ["https:", "http:"]

/** link returns the absolute address, or null unless its scheme is one of the given ones. */
export function link(address, server, schemes = [...WEB, "mailto:"]) {
  try {
    if (!words(address)) return null
    const url = new URL(address, server)
    return schemes.includes(url.protocol) ? url.href : null
  } catch {
    return null
  }
}

/** list returns a value that is an array, and of anything else an empty one. */
export const list = (value) => (Array.isArray(value) ? value : [])

/** words returns a value as a text for people; an object has none. */
export const words = (value) => (["string", "number", "boolean"].includes(typeof value) ? String(value) : "")

const anchor = (href, ...children) => h("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children)

const scroll = (wide) => h("div", { className: "scroll", tabIndex: 0 }, wide)

/** picture shows an image of the server; one of another host is loaded after a click alone, because its host learns of the reader. */
export function picture(address, alt, server) {
  const src = link(address, server, [...WEB, "data:"])
  if (!src) return document.createTextNode(alt)
  const { protocol, origin, host } = new URL(src)
  const image = () => h("img", { alt, loading: "lazy", src })
  if (origin === new URL(server).origin || (protocol === "data:" && src.startsWith("data:image/"))) return image()
  if (protocol === "data:") return document.createTextNode(alt)
  const show = h("button", { className: "foreign" }, `Show image${alt ? ` “${alt}”` : ""} from ${host}`)
  show.onclick = () => show.replaceWith(image())
  return show
}

/** code shows a block of code with a button that copies it. */
function code(pre) {
  const copy = h("button", { className: "copy" }, "Copy")
  copy.onclick = async () => {
    getSelection().selectAllChildren(pre) // without a clipboard, as on http, the person copies it
    const copied = await navigator.clipboard?.writeText(pre.textContent).then(() => true, () => false)
    copy.textContent = copied ?? document.execCommand("copy") ? "Copied" : "Not copied"
    setTimeout(() => (copy.textContent = "Copy"), 2000)
  }
  pre.tabIndex = 0
  return part("div", "code", {}, copy, pre)
}

// The elements of rendered Markdown. An unknown element is replaced by its children, and a dropped one is gone.
const ELEMENTS = new Set("p br hr strong em b i s del sup sub code blockquote ul ol li h1 h2 h3 h4 h5 h6 thead tbody tr th td".split(" "))
const EMPTY = new Set(["br", "hr", "img", "input"])
const DROPPED = new Set(["script", "style", "template", "noscript", "iframe", "object", "title", "textarea", "select", "svg", "math"])

const ENTITIES = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'", nbsp: "\u00a0" }
const plain = (text) => text.replace(/&(?:#(\d+)|#x([\da-f]+)|([a-z]+));/gi, (all, ten, hex, name) => {
  const code = ten ? Number(ten) : parseInt(hex, 16)
  return name ? ENTITIES[name] ?? all : code <= 0x10ffff ? String.fromCodePoint(code) : all
})

/**
 * rendered returns a fragment of server-rendered Markdown. It reads the tags itself and makes each node by its name, so that no
 * parser of the browser, and no policy of Trusted Types, sees the text. env is {server, fusionData}.
 */
export function rendered(html, env) {
  const open = [{ name: "", attributes: {}, children: [] }]
  for (const [token, close, tag, rest] of String(html).matchAll(/<(\/?)([a-z][a-z0-9]*)((?:[^<>"']|"[^"]*"|'[^']*')*)>|[^<]+|</gi)) {
    const top = open.at(-1)
    const name = tag?.toLowerCase()
    if (!tag) top.children.push(plain(token))
    else if (close) {
      const at = open.findLastIndex((n) => n.name === name)
      if (at > 0) open.length = at
    } else {
      const attributes = Object.fromEntries([...rest.matchAll(/([a-z-]+)(?:="([^"]*)")?/gi)].map(([, key, value]) => [key.toLowerCase(), plain(value ?? "")]))
      const n = { name, attributes, children: [] }
      top.children.push(n)
      if (!EMPTY.has(name) && open.length < DEPTH) open.push(n)
    }
  }
  return copied(open[0], document.createDocumentFragment(), env)
}

const textOf = (n) => (typeof n === "string" ? n : n.children.map(textOf).join(""))

function copied(from, to, env) {
  for (const n of from.children) {
    if (typeof n === "string") to.append(n)
    else if (DROPPED.has(n.name)) continue
    else if (n.name === "img") to.append(picture(n.attributes.src, n.attributes.alt ?? "", env.server))
    else if (n.name === "input") to.append("checked" in n.attributes ? "☑ " : "☐ ")
    else if (n.name === "a") {
      const href = link(n.attributes.href, env.server)
      copied(n, href ? to.appendChild(anchor(href)) : to, env)
    } else if (n.name === "pre") to.append(block(n, env))
    else if (n.name === "table") to.append(scroll(copied(n, h("table"), env)))
    else copied(n, ELEMENTS.has(n.name) ? to.appendChild(allowed(n)) : to, env)
  }
  return to
}

function allowed({ name, attributes }) {
  const e = h(name)
  if (name === "ol" && attributes.start > 1) e.start = attributes.start
  if (/^(left|right|center)$/.test(attributes.align)) e.className = attributes.align
  return e
}

function block(pre, env) {
  const text = textOf(pre)
  const language = /language-([\w+#.-]+)/.exec(pre.children[0]?.attributes?.class)?.[1]
  return (language === "fusion-fragment" && fusion(text, env.fusionData)) || code(h("pre", { "data-language": language }, h("code", {}, text)))
}

/** fusion shows the fields of a fusion fragment with the page's data; null if the text is none. */
function fusion(text, data) {
  let fragment
  try {
    fragment = JSON.parse(text)
  } catch {
    return null
  }
  const sections = list(fragment?.sections ?? fragment?.children ?? (fragment?.fields && [fragment]))
  if (sections.length === 0) return null
  const value = (field) => words(String(field.key ?? field.name ?? "").split(".").reduce((at, key) => at?.[key], data ?? {}))
  const rows = (s) => list(s?.fields).filter(Boolean).flatMap((f) => [h("dt", {}, words(f.label ?? f.key)), h("dd", {}, [value(f), words(f.unit)].filter(Boolean).join(" ") || "–")])
  return part("div", "fusion", {}, h("h3", {}, words(fragment.title)),
    ...sections.flatMap((s) => [s !== fragment && s?.title ? h("h4", {}, words(s.title)) : null, h("dl", {}, ...rows(s))]))
}

/** schema shows a uiSchema 2.0. act gets the node of a pressed button. env is {server}. */
export function schema(ui, env, act) {
  const root = part("div", "ui", { lang: words(ui.locale) || null, "data-status": words(ui.status), "data-theme": words(ui.theme) })
  root.append(node(ui.root, env, act, 0))
  return root
}

function node(n, env, act, depth) {
  if (typeof n !== "object" || n === null || depth > DEPTH) return document.createTextNode(words(n))
  const make = nodes[Object.hasOwn(nodes, n.type) ? n.type : "unknown"]
  const e = make(n, (c) => node(c, env, act, depth + 1), env, act)
  for (const key of ["appearance", "role", "status", "theme"]) if (e.dataset && n[key]) e.dataset[key] = words(n[key])
  return e
}

const text = (n) => words(n.content ?? n.label)

// What the daemon stores is complete: it refuses nodes without their members.
const nodes = {
  stack: (n, child) => h("div", { className: `stack ${n.direction === "horizontal" ? "row" : ""}` }, ...list(n.children).map(child)),
  text: (n) => h({ title: "h3", subtitle: "h4" }[n.role] ?? "p", {}, text(n)),
  badge: (n) => h("span", { className: "badge" }, text(n)),
  divider: () => h("hr"),
  image: (n, _, env) => picture(n.url, words(n.alt), env.server),
  list: (n, child) => h(n.ordered ? "ol" : "ul", {}, ...list(n.items).map((i) => h("li", {}, child(i)))),
  table: (n, child) => scroll(h("table", {},
    h("thead", {}, h("tr", {}, ...list(n.columns).map((c) => h("th", { scope: "col" }, words(c))))),
    h("tbody", {}, ...list(n.rows).map((row) => h("tr", {}, ...list(row).map((c) => h("td", {}, child(c)))))))),
  progress: (n) => h("label", { className: "progress" }, h("span", {}, text(n)), bar(n.value, n.max ?? 100)),
  button: (n, _, env, act) => {
    const href = link(n.url, env.server, WEB)
    if (!act) return h("span", { className: "badge" }, [text(n), words(n.url)].filter(Boolean).join(" "))
    return href ? anchor(href, text(n)) : h("button", { onclick: () => act(n) }, text(n))
  },
  unknown: (n, child) => h("div", {}, text(n), ...list(n.children).map(child)),
}

/** bar is a progress bar; without a number it only says that work goes on. */
export function bar(value, max) {
  const e = h("progress")
  if (Number.isFinite(value)) {
    e.max = max > 0 ? max : value > 1 ? 100 : 1
    e.value = value
  }
  return e
}
