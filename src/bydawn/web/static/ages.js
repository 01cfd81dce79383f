// Ages count by the server's clock, and stop when there is no news.

import { hold } from "./swap.js";

const meta = document.querySelector('meta[name="now"]');
const ahead = meta ? Date.parse(meta.content) - Date.now() : 0;
let frozen = 0;

export function ages() {
  setInterval(count, 1000);
  clocks(document);
  document.addEventListener("swapped", (event) => clocks(event.detail));
}

// Times of day are the reader's, wherever the server is; a date and seconds are there if the server gave them.
function clocks(root) {
  for (const time of root.querySelectorAll("time[data-clock]")) {
    const shape = /^(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?$/.exec(time.textContent);
    if (!shape) continue;
    const at = new Date(time.dateTime);
    const day = shape[1] ? `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ` : "";
    const seconds = shape[2] ? `:${two(at.getSeconds())}` : "";
    time.textContent = `${day}${two(at.getHours())}:${two(at.getMinutes())}${seconds}`;
  }
}

function two(number) {
  return String(number).padStart(2, "0");
}

function count() {
  if (frozen || document.hidden) return;
  for (const time of document.querySelectorAll("time[data-age], time[data-elapsed]")) {
    const seconds = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
    const text = "age" in time.dataset ? ago(seconds) : words(seconds);
    if (time.textContent !== text) time.textContent = text;
  }
}

function ago(seconds) {
  const days = Math.floor(seconds / 86400);
  return days > 1 ? `${days} days ago` : `${words(seconds)} ago`;
}

function words(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const minutes = Math.floor(whole / 60);
  if (!minutes) return `${whole} s`;
  return minutes < 60 ? `${minutes} m ${two(whole % 60)}` : `${Math.floor(minutes / 60)} h ${two(minutes % 60)}`;
}

export function thaw() {
  frozen = 0;
  document.body.dataset.live = "yes";
  const banner = document.getElementById("stale");
  if (banner && !banner.hidden) {
    hold(() => (banner.hidden = true));
    banner.replaceChildren();
  }
  state("Live");
}

// A page without news must not look alive.
export function freeze({ seen, retryAt, again, isOut }) {
  frozen ||= seen;
  document.body.dataset.live = "no";
  state("Not live");
  const banner = document.getElementById("stale");
  if (!banner) return;
  if (banner.hidden) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Try now" });
    button.className = "button";
    button.addEventListener("click", again);
    banner.replaceChildren(document.createElement("strong"), document.createElement("span"), button);
    const show = () => (banner.hidden = false);
    if (scrollY) hold(show); // else it is seen at once
    else show();
    say("Not live. What you see may be out of date.");
  }
  const wait = Math.max(0, Math.ceil((retryAt - Date.now()) / 1000));
  const soon = wait ? `Trying again in ${wait} s.` : "Trying again.";
  if (isOut) say("You are signed out. What you typed is still here.");
  const texts = isOut
    ? ["You are signed out", "What you typed is still here. Copy it, then sign in again."]
    : [`Not live: last news ${words((Date.now() - seen) / 1000)} ago`, `What you see may be out of date. ${soon}`];
  texts.forEach((text, place) => (banner.children[place].textContent = text));
}

function say(text) {
  const said = document.getElementById("said");
  if (said.textContent !== text) said.textContent = text;
}

function state(text) {
  const live = document.getElementById("live");
  if (live && live.textContent !== text) live.textContent = text;
}
