// One stream per browser, not per tab: a browser opens six connections to a server, and a stream keeps one of them.
// A lock elects the tab that reads; it tells the others. Without locks each visible tab reads for itself.

const SILENCE = 40000; // nothing for so long, not even a sign of life: not live
const STALE = 20000; // older news make us try at once when someone comes back
const SLOW = 15000; // a server that has not answered by then does not answer
const HIDDEN = 60000;
const RETRY = [1000, 2000, 4000, 8000, 15000];
const shared = "locks" in navigator && "BroadcastChannel" in window;
const id = Math.random().toString(36).slice(2);

// A place in a log, `billing:13:48211:495`: the round, how much of its output is there, and the number of the next line.
const round = (place) => place.split(":").slice(0, -2).join(":");
const offset = (place) => Number(place.split(":").at(-2));
const subjects = (need) => JSON.stringify({ ...JSON.parse(need), logs: JSON.parse(need).logs.map(round) });

export function follow({ needs, live, lost, on }) {
  const channel = shared ? new BroadcastChannel("bydawn") : null;
  const others = new Map(); // what each other tab shows
  let last = ""; // the id of the last fact
  let seen = Date.now();
  let abort = null;
  let tries = 0;
  let timer = 0;
  let leads = !shared;
  let retryAt = 0;
  let isOut = false; // signed out
  let asked = null; // the lock
  let resign = null;
  let asleep = 0;

  const tell = (message) => channel?.postMessage({ from: id, ...message });
  const mine = () => JSON.stringify(needs());

  // -- signs of life ---------------------------------------------------------------------------------------------------

  function sign() {
    seen = Date.now();
    retryAt = 0;
    isOut = false;
    live();
  }

  // The tab that reads knows first; the others must not look alive for longer.
  function silence() {
    lost({ seen, retryAt, again, isOut });
    if (leads) tell({ kind: "lost", seen, retryAt, isOut });
  }

  setInterval(() => {
    const silent = Date.now() - seen;
    if (silent > SILENCE || (leads && !abort && silent > 3000)) silence();
  }, 1000);

  function again() {
    if (!leads && Date.now() - seen > SILENCE) return elect(true); // the tab that reads may be frozen
    if (!leads) return tell({ kind: "again" });
    clearTimeout(timer);
    tries = 0;
    reopen();
  }

  // The reader is back, or the network: a stream that seems open may be dead.
  function wake() {
    if ((leads && !abort) || Date.now() - seen > STALE) again();
  }

  // -- the tab that reads ----------------------------------------------------------------------------------------------

  function address() {
    const pages = new Set();
    const logs = new Map();
    for (const text of [mine(), ...others.values()]) {
      const wanted = JSON.parse(text);
      wanted.pages.forEach((each) => pages.add(each));
      for (const each of wanted.logs) {
        const known = logs.get(round(each)); // the tab that is furthest behind needs the most
        if (!known || offset(each) < offset(known)) logs.set(round(each), each);
      }
    }
    const query = new URLSearchParams([["loops", "*"]]);
    pages.forEach((each) => query.append("page", each));
    logs.forEach((each) => query.append("log", each));
    return `/api/stream?${query}`;
  }

  async function open() {
    if (!leads || abort) return;
    abort = new AbortController();
    const mineNow = abort;
    const late = setTimeout(() => mineNow.abort(), SLOW);
    try {
      const headers = { accept: "text/event-stream", ...(last && { "last-event-id": last }) };
      const answer = await fetch(address(), { headers, signal: mineNow.signal, cache: "no-store" });
      clearTimeout(late);
      isOut = answer.status === 401;
      if (isOut) silence();
      if (!answer.ok) {
        last = ""; // perhaps it was too long
        throw new Error(answer.status);
      }
      tries = 0;
      await read(answer.body, mineNow);
    } catch {
      // said by the banner
    }
    clearTimeout(late);
    if (abort === mineNow) abort = null;
    if (!leads || abort) return;
    const wait = RETRY[Math.min(tries++, RETRY.length - 1)] * (0.8 + 0.4 * Math.random());
    retryAt = Date.now() + wait;
    timer = setTimeout(open, wait);
    setTimeout(() => !abort && silence(), 1500);
  }

  async function read(body, mineNow) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const stuck = setInterval(() => Date.now() - seen > SILENCE && mineNow.abort(), 1000);
    let rest = "";
    try {
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        blocks.forEach(take);
      }
    } finally {
      clearInterval(stuck);
    }
  }

  function take(block) {
    const event = { data: "" };
    for (const line of block.split("\n")) {
      const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
      if (name === "data") event.data += value;
      else if (name) event[name] = value;
    }
    if (event.id) last = event.id;
    if (!event.event || !event.data) return; // a comment says nothing about how fresh the page is
    if (event.event === "resync") {
      last = ""; // something is lost: everything as it is now
      return reopen();
    }
    sign();
    tell({ kind: "sign" });
    heard(event.event, event.data);
    tell({ kind: "event", event: event.event, data: event.data });
  }

  function heard(kind, data) {
    on[kind]?.(JSON.parse(data));
    if (kind === "log" && !leads) tell({ kind: "need", need: mine() }); // where this tab is now
  }

  function reopen() {
    if (!leads) return;
    abort?.abort();
    abort = null;
    open();
  }

  // -- among tabs ------------------------------------------------------------------------------------------------------

  if (channel) {
    channel.onmessage = ({ data }) => {
      if (data.kind === "event") heard(data.event, data.data);
      else if (data.kind === "sign") sign();
      else if (data.kind === "again") leads && again();
      else if (data.kind === "who") tell({ kind: "need", need: mine() });
      else if (data.kind === "gone") others.delete(data.from);
      else if (data.kind === "lost") {
        ({ seen, retryAt, isOut } = data);
        silence();
      }
      else if (data.kind === "need") {
        const known = others.get(data.from);
        others.set(data.from, data.need);
        if (!known || subjects(known) !== subjects(data.need)) reopen();
      }
    };
  }

  // Waits for the lock, once; and again if another tab has taken it from us.
  async function elect(steal = false) {
    tell({ kind: "need", need: mine() });
    if (!shared) return open();
    if ((asked || leads) && !steal) return;
    asked?.abort();
    const mineNow = (asked = new AbortController());
    const lead = () => {
      if (asked !== mineNow) return; // we do not want it any more
      leads = true;
      tell({ kind: "who" });
      setTimeout(open, 50);
      return new Promise((release) => (resign = release));
    };
    const options = steal ? { steal } : { signal: mineNow.signal };
    await navigator.locks.request("bydawn-stream", options, lead).catch(() => {});
    if (asked !== mineNow) return;
    const led = leads;
    rest();
    if (led) elect();
  }

  function rest() {
    if (shared) leads = false;
    clearTimeout(timer);
    abort?.abort();
    abort = null;
    asked?.abort();
    asked = null;
    resign?.();
    resign = null;
  }

  function look() {
    clearTimeout(asleep);
    if (document.hidden) return (asleep = setTimeout(rest, HIDDEN));
    elect();
    wake();
  }

  document.addEventListener("visibilitychange", look);
  window.addEventListener("online", wake);
  window.addEventListener("focus", wake);
  window.addEventListener("pagehide", () => {
    tell({ kind: "gone" });
    rest();
  });
  window.addEventListener("pageshow", (event) => event.persisted && look());
  elect();
  look(); // it may have been opened in the background
}
