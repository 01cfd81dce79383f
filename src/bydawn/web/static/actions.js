// Small things that need a script: copying, signing in from a link, ticking at once, an answer as it is written.

import { typed } from "./swap.js";

export function actions() {
  signIn();
  addEventListener("hashchange", signIn); // a link that is pasted where the page is open already
  show(document);
  document.addEventListener("swapped", (event) => show(event.detail));
  document.addEventListener("swapped", (event) => free(event.detail));
  document.addEventListener("click", copy);
  document.addEventListener("change", tick);
  document.addEventListener("chat", chat);
  document.addEventListener("submit", once);
  bar();
  editor();
}

// The bar that leads to another loop can be closed. What is being read does not move when it comes or goes above it.
function bar() {
  const needs = document.getElementById("needs-now");
  let height = 0;
  new ResizeObserver(() => {
    if (scrollY) scrollBy(0, needs.offsetHeight - height);
    height = needs.offsetHeight;
  }).observe(needs);
  needs.querySelector("button").addEventListener("click", () => {
    needs.hidden = true;
    document.getElementById("main").focus({ preventScroll: true });
  });
}

function say(text) {
  document.getElementById("said").textContent = text;
}

// The code stands behind the #, which is never sent to a server or written into a log.
function signIn() {
  const code = location.hash.slice(1);
  if (location.pathname !== "/login" || !/^[a-z0-9]{8,40}$/i.test(code)) return;
  history.replaceState(null, "", location.pathname);
  post(location.pathname, { code });
}

function post(action, fields) {
  const form = Object.assign(document.createElement("form"), { method: "post", action, hidden: true });
  for (const [name, value] of Object.entries(fields)) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
  document.body.append(form);
  form.submit();
}

function show(root) {
  for (const form of root.querySelectorAll("form[data-ticks]")) {
    if (typed(form)) form.querySelector(".scripts-off")?.classList.remove("scripts-off"); // ticked before we were here
  }
  root.querySelectorAll("[data-copy][hidden], [data-scripts][hidden]").forEach((each) => (each.hidden = false));
}

async function copy(event) {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    flash(button, "Copied.");
  } catch {
    // plain http has no clipboard: a command or an answer is selected instead
    const text = button.parentElement.querySelector("code") ?? button.closest("[data-turn]")?.querySelector(".said");
    if (text) getSelection().selectAllChildren(text);
    flash(button, "Selected: now copy it.");
  }
}

// Says for a moment, at what it is about, what has happened; the part of the page that it stands in stays as it is.
let untold = 0;
export function flash(about, text) {
  const told = document.getElementById("told");
  const { top, left } = about.getBoundingClientRect();
  told.textContent = text;
  told.hidden = false;
  told.style.top = `${Math.max(8, top - told.offsetHeight - 4)}px`;
  told.style.left = `${Math.max(8, Math.min(left, innerWidth - told.offsetWidth - 8))}px`;
  clearTimeout(untold);
  untold = setTimeout(() => (told.hidden = true), 3000);
  say(text);
}

// A tick is one edit: the box, and the version that it was made on.
let isTicking = false;
addEventListener("pageshow", () => (isTicking = false)); // also when a person comes back to a page that was left
function tick(event) {
  const box = event.target;
  const form = box.closest?.("form[data-ticks]");
  if (!form || box.name !== "tick") return;
  if (isTicking) {
    box.checked = !box.checked; // to send it now would call off the one before
    return say("Your last tick is still being saved.");
  }
  isTicking = true;
  const ticked = { line: box.value, ticked: box.checked ? "1" : "0", shown: box.dataset.shown ?? "" };
  const byKey = box.matches(":focus-visible");
  sessionStorage.setItem("ticked", JSON.stringify({ ...ticked, byKey, scroll: scrollY }));
  post(form.action, { csrf: form.elements.csrf.value, version: form.elements.version.value, ...ticked });
}

// After a tick the page is where it was, and so is the focus of those who tick with keys.
const ticked = JSON.parse(sessionStorage.getItem("ticked"));
const boxes = [...document.querySelectorAll("form[data-ticks] input[name=tick]")];
sessionStorage.removeItem("ticked");
if (ticked && boxes.length) {
  scrollTo(0, ticked.scroll);
  const same = boxes.filter((each) => (each.dataset.shown ?? "") === ticked.shown);
  const box = same.find((each) => each.value === ticked.line) ?? same[0];
  if (ticked.byKey) box?.focus({ preventScroll: true });
}

// What was written in an editor and is not saved is not left without a question, unless the button or link says so.
function editor() {
  const form = document.querySelector("form[data-saves]");
  if (!form) return;
  let isSure = false;
  const sure = () => (isSure = true);
  form.addEventListener("submit", sure);
  document.getElementById("mine")?.addEventListener("submit", sure);
  form.querySelectorAll("a").forEach((link) => link.addEventListener("click", sure));
  for (const again of ["input", "pageshow"]) addEventListener(again, () => (isSure = false));
  addEventListener("beforeunload", (event) => {
    const { text } = form.elements;
    if (!isSure && text.value !== text.defaultValue) event.preventDefault();
  });
}

// A double tap counts once.
function once(event) {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) return event.preventDefault();
  form.dataset.sent = "1";
  setTimeout(() => delete form.dataset.sent, 4000);
}

function chat(event) {
  const line = event.detail;
  const turn = document.querySelector("[data-turn].running .said");
  if (!turn) return;
  if (line.event === "message") turn.textContent = turn.dataset.begun ? `${turn.textContent}\n\n${line.text}` : line.text;
  else if (line.event === "activity") turn.dataset.begun || (turn.textContent = `${line.text} …`);
  if (line.event === "message") turn.dataset.begun = "1";
}

// The next question can be asked when no answer is waited for.
function free(section) {
  const button = document.querySelector(".composer button[data-free][disabled]");
  if (!button || section.id !== "turns" || section.querySelector(".running")) return;
  button.disabled = false;
  button.textContent = button.dataset.free;
  say("The agent is done.");
}
