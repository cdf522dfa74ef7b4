// The console works without this script. The script makes a page follow the store, shows times as
// ages, copies ids, and adds keys.

// The server has escaped every fragment. Nothing else becomes HTML.
const policy = window.trustedTypes?.createPolicy("console", { createHTML: (html) => html });

function elementOf(html) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(html) : html;
  return template.content.firstElementChild;
}

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

function age(time) {
  const seconds = Math.round((Date.now() - time) / 1000);
  const size = Math.abs(seconds);
  const [length, unit] = units.find(([length]) => size >= length) ?? [1, "s"];
  const words = `${Math.floor(size / length)} ${unit}`;
  return seconds < 0 ? `in ${words}` : `${words} ago`;
}

function showAges(within) {
  for (const time of within.querySelectorAll("time[data-age]")) {
    time.title ||= time.textContent;
    const words = age(Date.parse(time.dateTime));
    if (time.textContent !== words) time.textContent = words;
  }
}

// A fragment that somebody works in waits until they have left it.
const waiting = new Map();
const inUse = (element) => element.contains(document.activeElement) || element.querySelector("details.act[open]") !== null;

function apply({ id, html, list, after }) {
  const there = document.getElementById(id);
  if (there && inUse(there)) return void waiting.set(id, { id, html, list, after });
  waiting.delete(id);
  if (!html) return there?.remove();
  const element = elementOf(html);
  showAges(element);
  if (there) {
    showAges(there); // so that an element that only got older stays
    return there.isEqualNode(element) ? undefined : there.replaceWith(element);
  }
  const before = after && document.getElementById(after);
  if (before) before.after(element);
  else document.getElementById(list)?.prepend(element);
}

document.addEventListener("focusout", () => setTimeout(() => [...waiting.values()].forEach(apply)));

function follow() {
  const lag = document.querySelector(".lag");
  const page = location.pathname.slice(new URL(document.baseURI).pathname.length - 1) + location.search;
  const source = new EventSource(`events?page=${encodeURIComponent(page)}`);
  source.addEventListener("open", () => (lag.textContent = ""));
  source.addEventListener("error", () => (lag.textContent = "The connection is lost. The page tries again."));
  source.addEventListener("whole", (event) => {
    const fragments = JSON.parse(event.data);
    const ids = new Set(fragments.map(({ id }) => id));
    for (const { id } of document.querySelectorAll("[data-live]")) if (!ids.has(id)) apply({ id });
    fragments.forEach(apply);
  });
  source.addEventListener("patch", (event) => JSON.parse(event.data).forEach(apply));
  source.addEventListener("reload", () => {
    source.close();
    if (document.querySelector("details.act[open], textarea:focus, input:focus")) lag.textContent = "This page is old. Reload it.";
    else location.reload();
  });
  window.addEventListener("pagehide", () => source.close());
}

function keys(event) {
  if (event.target.closest("input, textarea, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    return document.querySelector(".find input")?.focus();
  }
  const step = { j: 1, k: -1 }[event.key];
  if (!step) return;
  const links = [...document.querySelectorAll("[data-row] a.open")];
  const at = links.indexOf(document.activeElement);
  links[Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}

document.addEventListener("keydown", keys);

// A page over http has no clipboard, unless it is of this machine. The old command works there, and else people copy by hand.
function copyOldWay(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) prompt("Copy it from here:", text);
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    copyOldWay(button.dataset.copy);
    button.focus();
  }
  const told = document.querySelector(".lag");
  button.dataset.done = told.textContent = "Copied.";
  setTimeout(() => {
    delete button.dataset.done;
    if (told.textContent === "Copied.") told.textContent = "";
  }, 1500);
}

document.documentElement.classList.add("js");
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) return void copy(button);
  const menu = document.querySelector("details.short[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

// A session that its operator has ended is not tried again.
document.querySelector("form.who")?.addEventListener("submit", () => localStorage.removeItem("session"));
const login = document.querySelector("form.login");
function redeem() {
  login.elements.ticket.value = location.hash.slice(1);
  history.replaceState(null, "", location.pathname);
  login.submit();
}
// The link of a ticket may be opened in a tab that shows the login already.
if (login) addEventListener("hashchange", redeem);
if (login && location.hash.length > 1) redeem();
else if (login && !document.querySelector(".said")) {
  // A tab without the path of the session, such as one with the bare address, tries it once.
  const session = localStorage.getItem("session");
  localStorage.removeItem("session");
  if (session?.startsWith("/at/")) location.replace(session);
}
if (document.querySelector("base")) localStorage.setItem("session", new URL(document.baseURI).pathname);
showAges(document);
setInterval(() => showAges(document), 1000);
if (document.querySelector("main[data-follow]")) follow();
// After a form, a screen reader and the keyboard go on at its result.
const said = document.querySelector("main > .said, [data-test=try-result], [data-test=checked]");
if (said) {
  said.tabIndex = -1;
  said.focus();
}
