// Keeps a page fresh. The page itself comes whole from the server and works without this.
import { ages, freeze, thaw } from "./ages.js";
import { actions } from "./actions.js";
import { keys } from "./keys.js";
import { log } from "./log.js";
import { follow } from "./stream.js";
import { swap, typed } from "./swap.js";

const page = document.body.dataset.page;
const here = document.body.dataset.loop;

actions();
keys();
ages();

if (page && document.querySelector("[data-live], [data-log]")) {
  const output = log();
  follow({
    needs: () => ({ pages: document.querySelector("[data-live]") ? [page] : [], logs: output.place() }),
    live: thaw,
    lost: (news) => (news.isOut && !typed(document) ? leave() : freeze(news)),
    on: {
      fragment: (part) => part.page === page && swap(part),
      head: (head) => head.page === page && mark(head),
      log: (rows) => output.add(rows),
      chat: (said) => said.loop === here && document.dispatchEvent(new CustomEvent("chat", { detail: said.line })),
      fact: say,
      gone: (part) => part.page === page && !typed(document) && location.reload(),
    },
  });
}

let leaves = false;
function leave() {
  if (!leaves) location.assign("/login"); // a second time would begin it anew
  leaves = true;
}

function mark(head) {
  document.title = `${head.title} · bydawn`;
  const icon = document.getElementById("favicon");
  if (icon) icon.href = `/static/icons/${head.mark ? `sun-${head.mark}` : "sun"}.svg`;
}

// Rounds that end and states that change are spoken, at most one in ten seconds, the latest; a stop that needs a person
// at once.
let spoken = 0;
let next = 0;
function say(fact) {
  if (fact.alarm) return alarm(fact);
  if (fact.loop === needy && fact.type === "run.started") calm(); // it goes on
  if (!fact.text || (here && fact.loop !== here)) return;
  clearTimeout(next);
  const speak = () => {
    spoken = Date.now();
    document.getElementById("said").textContent = fact.text;
  };
  next = setTimeout(speak, Math.max(0, spoken + 10000 - Date.now()));
}

// Nothing moves under a finger, so a loop that needs a person may be far from where they look: a bar leads to it.
let needy = "";
function alarm(fact) {
  clearTimeout(next);
  document.getElementById("alarm").textContent = fact.text;
  if (fact.loop === here) return;
  const bar = document.getElementById("needs-now");
  needy = fact.loop;
  Object.assign(bar.firstChild, { href: `/loops/${encodeURIComponent(needy)}`, textContent: `${needy} needs you now` });
  bar.hidden = false;
}

function calm() {
  needy = "";
  document.getElementById("needs-now").hidden = true;
}

// There it stands first, unless that is above what is being read.
document.addEventListener("swapped", ({ detail }) => {
  if (detail.id === "needs-you" && detail.getBoundingClientRect().bottom > 0) calm();
});
