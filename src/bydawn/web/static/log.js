// The output of a running round. Following is where you are: at the end, new lines pull the page; above it, they wait.

const MOST = 5000; // lines that stay in the page

export function log() {
  let list = document.querySelector("[data-log]");
  let unseen = 0;
  const box = document.getElementById("follow");
  const button = document.getElementById("new-lines");

  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 60;
  const free = () => document.getSelection()?.isCollapsed !== false;
  const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);

  function tell() {
    if (box) box.checked = atEnd();
    if (atEnd()) unseen = 0;
    if (button) {
      button.hidden = unseen === 0;
      const text = button.querySelector(".text") ?? button;
      text.textContent = unseen === 1 ? "1 new line" : `${unseen} new lines`;
    }
  }

  if (list) {
    addEventListener("scroll", tell, { passive: true });
    box?.addEventListener("change", () => box.checked && toEnd());
    box?.closest("[hidden]")?.removeAttribute("hidden");
    button?.addEventListener("click", toEnd);
    document.addEventListener("follow", toEnd);
    if (list.dataset.open !== undefined && !location.hash && !new URLSearchParams(location.search).get("q")) toEnd();
    tell();
  }

  return {
    place: () => (list && list.dataset.open !== undefined ? [list.dataset.log] : []),
    add(rows) {
      list = document.querySelector("[data-log]");
      if (!list || !list.dataset.log.startsWith(`${rows.log}:`)) return;
      const [offset, line] = list.dataset.log.split(":").slice(-2).map(Number);
      if (rows.offset <= offset) return;
      list.dataset.log = `${rows.log}:${rows.offset}:${rows.line}`;
      const follows = atEnd() && free();
      const made = document.createElement("template");
      made.innerHTML = rows.html;
      document.dispatchEvent(new CustomEvent("swapped", { detail: made.content }));
      const lines = [...made.content.children];
      const first = lines.findIndex((each) => each.id && Number(each.id.slice(1)) >= line); // another tab may lack more
      const fresh = first < 0 ? [] : lines.slice(first);
      list.append(...fresh);
      while (follows && list.children.length > MOST) list.firstElementChild.remove();
      unseen += fresh.length;
      if (follows) toEnd();
      tell();
    },
  };
}
