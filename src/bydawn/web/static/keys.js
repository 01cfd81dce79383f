// Single keys: none of them stops, approves or resumes anything.

import { flash } from "./actions.js";

const typing = (target) => target.closest("input, textarea, select, [contenteditable]");

export function keys() {
  addEventListener("keydown", (event) => {
    if (event.isComposing) return; // the key is for the word that is being composed
    if ((event.ctrlKey || event.metaKey) && !event.altKey) return chord(event);
    if (event.altKey || event.defaultPrevented) return;
    if (event.key === "Escape") return document.activeElement?.blur();
    if (document.body.dataset.keys === "off" || typing(event.target)) return;
    const act = KEYS[event.key];
    if (act && act() !== false) event.preventDefault();
  });
}

// Ctrl S saves a document, Ctrl Enter sends a form.
function chord(event) {
  const form = event.target.closest?.("form");
  if (event.key.toLowerCase() === "s" && document.querySelector("form[data-saves]")) {
    event.preventDefault();
    document.querySelector("form[data-saves]").requestSubmit();
  } else if (event.key === "Enter" && form && event.target.matches("textarea")) {
    event.preventDefault();
    const button = form.querySelector("button.main");
    if (!button?.disabled) form.requestSubmit(button ?? undefined);
  }
}

const go = (to) => (to ? location.assign(to) : false);
const KEYS = {
  j: () => row(1),
  k: () => row(-1),
  u: () => go(document.querySelector("a.back")?.href),
  "/": () => focus("input[type=search]"),
  t: () => focus('form[action$="/tell"] textarea'),
  n: () => hit(1),
  N: () => hit(-1),
  f: () => document.dispatchEvent(new CustomEvent("follow")),
  "?": () => go("/settings#keys"),
};
for (const number of [1, 2, 3, 4, 5]) {
  KEYS[number] = () => go(document.querySelectorAll(".tabs a")[number - 1]?.href);
}

function focus(what) {
  const found = document.querySelector(what);
  const fold = found?.closest("details");
  if (fold) fold.open = true; // nothing in a closed one can be focused
  found?.focus();
  return Boolean(found);
}

function row(step) {
  const rows = [...document.querySelectorAll("main a.row-name, main table.rounds a[href]")];
  const at = rows.indexOf(document.activeElement);
  const next = rows[at < 0 ? (step > 0 ? 0 : rows.length - 1) : at + step];
  next?.focus();
  return Boolean(next);
}

function hit(step) {
  const marks = [...document.querySelectorAll("main mark")];
  if (!marks.length) return false;
  const before = marks.findIndex((mark) => mark.ariaCurrent);
  const next = before < 0 && step < 0 ? marks.length - 1 : (before + step + marks.length) % marks.length;
  marks[before]?.removeAttribute("aria-current");
  marks[next].ariaCurrent = "true";
  marks[next].scrollIntoView({ block: "center" });
  const text = `${next + 1} of ${marks.length}`;
  flash(marks[next], text); // the search may be out of sight
  const place = document.getElementById("hit");
  if (place) place.textContent = `Now at ${text} on this page.`;
}
