// Replaces a part of the page, if it really differs, without taking anything from under a finger:
// focus, open folds, selections and what is being typed stay as they are.

const QUIET = 2000; // after a touch
let touched = 0;
let down = false;
const waiting = new Map();

addEventListener("pointerdown", (event) => touch(event.button === 0), { passive: true });
for (const over of ["pointerup", "pointercancel", "contextmenu", "blur"]) {
  addEventListener(over, () => touch(false), { passive: true }); // a menu, or another window, takes the pointerup
}
addEventListener("pointermove", (event) => down && !event.buttons && touch(false), { passive: true });
addEventListener("focusout", () => setTimeout(retry, 50));
setInterval(retry, 1000);

function touch(isDown) {
  down = isDown;
  touched = Date.now();
}

export function swap(part) {
  const old = document.getElementById(part.id);
  if (!old) return;
  const made = document.createElement("template");
  made.innerHTML = part.html;
  const next = made.content.firstElementChild;
  if (!next) return;
  keepAnswer(old, next);
  if (plain(old) === plain(next)) {
    renew(old, next);
    return waiting.delete(part.id);
  }
  if (busy(old)) return waiting.set(part.id, part);
  waiting.delete(part.id);
  next.querySelectorAll('input[name="csrf"]').forEach((field) => (field.value = csrf()));
  keepFolds(old, next);
  const focus = focused(old);
  next.querySelectorAll("[data-copy][hidden]").forEach((button) => (button.hidden = false));
  const { top, height } = old.getBoundingClientRect();
  old.replaceWith(next);
  if (top < 0) scrollBy(0, next.getBoundingClientRect().height - height); // what is being read stays where it is
  if (focus) next.querySelector(focus)?.focus({ preventScroll: true });
  document.dispatchEvent(new CustomEvent("swapped", { detail: next }));
}

function retry() {
  for (const part of [...waiting.values()]) swap(part);
}

function busy(section) {
  if (down || Date.now() - touched < QUIET) return true;
  const active = document.activeElement;
  if (section.contains(active) && active.matches("input, textarea, select")) return true;
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && section.contains(selection.anchorNode)) return true;
  return typed(section);
}

export function typed(section) {
  return [...section.querySelectorAll("textarea, input:not([type=hidden])")].some(
    (field) => field.value !== field.defaultValue || field.checked !== field.defaultChecked,
  );
}

// What counts when two versions are compared: not ages, not the visitor's own key, not which folds are open.
function plain(section) {
  const copy = section.cloneNode(true);
  copy.querySelectorAll("time").forEach((time) => (time.textContent = ""));
  copy.querySelectorAll('input[name="csrf"]').forEach((field) => field.setAttribute("value", ""));
  copy.querySelectorAll("details").forEach((fold) => fold.removeAttribute("open"));
  copy.querySelectorAll("[data-copy]").forEach((button) => button.removeAttribute("hidden"));
  copy.querySelectorAll('input[name="expect_seq"]').forEach((field) => field.setAttribute("value", ""));
  return copy.outerHTML;
}

// A loop may have stopped and gone on while this page got no news. It looks as before, so its buttons mean the same.
function renew(old, next) {
  const [ours, theirs] = [old, next].map((section) => section.querySelectorAll('input[name="expect_seq"]'));
  ours.forEach((field, index) => (field.value = theirs[index].value));
}

// The server shows an answer when it is complete; what has been written of it so far is only here.
function keepAnswer(old, next) {
  for (const said of old.querySelectorAll(".running [data-begun]")) {
    const turn = said.closest("[data-turn]").dataset.turn;
    next.querySelector(`[data-turn="${CSS.escape(turn)}"].running .said`)?.replaceWith(said.cloneNode(true));
  }
}

function keepFolds(old, next) {
  const name = (fold) => fold.id || fold.querySelector("summary")?.textContent.trim();
  const known = new Map([...old.querySelectorAll("details")].map((fold) => [name(fold), fold.open]));
  for (const fold of next.querySelectorAll("details")) {
    if (known.has(name(fold))) fold.open = known.get(name(fold));
  }
}

function focused(section) {
  const active = document.activeElement;
  if (!active || active === document.body || !section.contains(active)) return "";
  if (active.id) return `#${CSS.escape(active.id)}`;
  if (active.matches("a[href]")) return `a[href="${CSS.escape(active.getAttribute("href"))}"]`;
  const form = active.closest("form[action]");
  return form ? `form[action="${CSS.escape(form.getAttribute("action"))}"] button` : "";
}

function csrf() {
  return document.querySelector('meta[name="csrf"]')?.content ?? "";
}
