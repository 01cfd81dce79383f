// Replaces a part of the page, if it really differs, without taking anything from under a finger:
// focus, open folds, scroll positions, selections and what is being typed stay as they are.

const QUIET = 2000; // after a touch
const FIELDS = "input, textarea, select";
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
    waiting.delete(part.id);
    old.querySelector("[data-late]")?.remove();
    return renew(old, next);
  }
  if (busy(old, next)) return waiting.set(part.id, part);
  waiting.delete(part.id);
  next.querySelectorAll('input[name="csrf"]').forEach((field) => (field.value = csrf()));
  next.querySelectorAll("[data-copy][hidden]").forEach((button) => (button.hidden = false));
  keepFolds(old, next);
  const focus = old.contains(document.activeElement) && twin(document.activeElement, old, next);
  const scrolled = [...old.querySelectorAll("*")]
    .filter((box) => box.scrollTop || box.scrollLeft)
    .map((box) => [twin(box, old, next), box.scrollLeft, box.scrollTop]);
  const change = () => {
    old.replaceWith(next);
    scrolled.forEach(([box, left, top]) => box?.scrollTo(left, top));
    if (focus) focus.focus({ preventScroll: true });
  };
  hold(change, (each) => (isCertain(each, old) ? twin(each, old, next) : null));
  document.dispatchEvent(new CustomEvent("swapped", { detail: next }));
}

function retry() {
  for (const part of [...waiting.values()]) swap(part);
}

function busy(old, next) {
  if (down || Date.now() - touched < QUIET) return true;
  const selection = document.getSelection();
  if (selection && !selection.isCollapsed && selection.containsNode(old, true)) return true;
  if (!typed(old) && !isEntered(old, next)) return false;
  warn(old);
  return true;
}

export function typed(section) {
  return fields(section).some(isTyped);
}

function fields(section) {
  return [...section.querySelectorAll("textarea, input:not([type=hidden])")];
}

function isTyped(field) {
  return field.value !== field.defaultValue || field.checked !== field.defaultChecked;
}

// An empty field gives way if the next version has it, too: the cursor goes on there.
function isEntered(old, next) {
  const active = document.activeElement;
  return old.contains(active) && active.matches(FIELDS) && (active.value !== "" || !twin(active, old, next));
}

// -- what is the same in two versions ------------------------------------------------------------------------------------

// What counts when two versions are compared: not ages, not the visitor's own key, not which folds are open.
function plain(section) {
  const copy = section.cloneNode(true);
  copy.querySelectorAll("time").forEach((time) => (time.textContent = ""));
  copy.querySelectorAll('input[name="csrf"]').forEach((field) => field.setAttribute("value", ""));
  copy.querySelectorAll("details").forEach((fold) => fold.removeAttribute("open"));
  copy.querySelectorAll("[data-copy]").forEach((button) => button.removeAttribute("hidden"));
  copy.querySelectorAll('input[name="expect_seq"]').forEach((field) => field.setAttribute("value", ""));
  copy.querySelector("[data-late]")?.remove();
  return copy.outerHTML;
}

// The same thing in the next version: the one with its id, or the one that says and does the same.
function twin(each, old, next) {
  if (each === old) return next;
  if (!old.contains(each)) return each;
  if (each.id) return next.querySelector(`#${CSS.escape(each.id)}`);
  const [ours, theirs] = [alike(each, old), alike(each, next)];
  return ours.length === theirs.length ? theirs[ours.indexOf(each)] : null;
}

function alike(each, section) {
  const known = sense(each);
  return [...section.querySelectorAll(each.localName)].filter((other) => sense(other) === known);
}

// One of many that say the same could be any of them as soon as a row comes or goes.
function isCertain(each, old) {
  return !old.contains(each) || each === old || each.id || alike(each, old).length === 1;
}

function sense(each) {
  const [href, label] = [each.getAttribute("href"), each.getAttribute("aria-label")];
  const does = ["name", "value", "data-copy"].map((name) => each.getAttribute(name));
  const sent = [...(each.form?.querySelectorAll("input[type=hidden]") ?? [])]
    .filter((field) => !["csrf", "expect_seq"].includes(field.name))
    .map((field) => [field.name, field.value]);
  return JSON.stringify([href ?? label ?? words(each), does, each.form?.getAttribute("action"), sent]);
}

function words(each) {
  return [...each.querySelectorAll("time")].reduce((text, age) => text.replace(age.textContent, ""), each.textContent);
}

// -- what is kept --------------------------------------------------------------------------------------------------------

// A loop may have stopped and gone on while this page got no news. It looks as before, so its buttons mean the same.
function renew(old, next) {
  const [ours, theirs] = [old, next].map((section) => section.querySelectorAll('input[name="expect_seq"]'));
  ours.forEach((field, index) => (field.value = theirs[index].value));
}

function keepFolds(old, next) {
  const name = (fold) => fold.id || fold.querySelector("summary")?.textContent.trim();
  const known = new Map([...old.querySelectorAll("details")].map((fold) => [name(fold), fold.open]));
  for (const fold of next.querySelectorAll("details")) {
    if (known.has(name(fold))) fold.open = known.get(name(fold));
  }
}

// The server shows an answer when it is complete; what has been written of it so far is only here.
function keepAnswer(old, next) {
  for (const said of old.querySelectorAll(".running [data-begun]")) {
    const turn = said.closest("[data-turn]").dataset.turn;
    next.querySelector(`[data-turn="${CSS.escape(turn)}"].running .said`)?.replaceWith(said.cloneNode(true));
  }
}

// What is being read stays where it is, whatever changes around it: the field that is being filled in, or else the
// topmost thing in view that is still there afterwards.
export function hold(change, after = (each) => each) {
  const bar = document.querySelector(".top").getBoundingClientRect().bottom;
  const seen = [...document.querySelectorAll("main *")]
    .map((each) => ({ each, ...place(each) }))
    .filter(({ top, height }) => height && top >= bar && top < innerHeight)
    .sort((one, other) => isFilledIn(other.each) - isFilledIn(one.each) || one.top - other.top);
  change();
  for (const { each, top } of seen) {
    const found = after(each);
    if (found?.isConnected) return scrollBy(0, place(found).top - top);
  }
}

function place(each) {
  const { top, height } = each.getBoundingClientRect();
  return { top, height };
}

function isFilledIn(each) {
  return each === document.activeElement && each.matches(FIELDS);
}

// Someone types in a part that has changed. A form that no longer fits is refused by the server, which gives the text back
// on the page as it is then; so it is enough to say so, below what is being looked at, where it moves nothing.
function warn(section) {
  if (section.querySelector("[data-late]")) return;
  const note = Object.assign(document.createElement("p"), { className: "note c-lim" });
  note.dataset.late = "";
  note.textContent = "This has changed while you typed. If your text can no longer be sent, you get it back.";
  const field = fields(section).find(isTyped) ?? document.activeElement;
  (field.form ?? field).after(note);
  document.getElementById("said").textContent = note.textContent;
}

function csrf() {
  return document.querySelector('meta[name="csrf"]')?.content ?? "";
}
