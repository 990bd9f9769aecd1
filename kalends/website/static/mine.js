// My list: a star on each event. The IDs stay in this browser; the address of the list's page has them, too.
"use strict";
(() => {
  const { add, remove } = document.currentScript.dataset;
  const KEY = "kalends-mine";
  const MOST = 100;
  const MONTH = 30 * 864e5;
  const page = document.querySelector("[data-mine]");
  const shown = page?.dataset.mine.split(",").filter(Boolean).map(Number);

  // Pairs of an ID and the event's end. Events are forgotten 30 days after their end.
  const read = () => {
    try {
      const pairs = JSON.parse(localStorage.getItem(KEY) ?? "[]");
      return pairs.filter(([, end]) => !(end && new Date(end) < Date.now() - MONTH));
    } catch {
      return [];
    }
  };
  const write = (pairs) => {
    try {
      localStorage.setItem(KEY, JSON.stringify(pairs.slice(-MOST)));
    } catch {
      // Without storage, the stars have no effect.
    }
  };
  const list = () => read().map(([id]) => id).sort((a, b) => a - b);
  const show = (ids) => {
    const url = new URL(location);
    if (ids.length) url.searchParams.set("include", ids);
    else url.searchParams.delete("include");
    location.replace(url);
  };
  const findEnd = (item) => {
    const time = (item?.closest("article") ?? item)?.querySelector("time");
    return time?.dataset.end ?? time?.dateTime;
  };

  const equip = () => {
    for (const item of document.querySelectorAll("[data-event]:not(:has(> .star))")) {
      const id = Number(item.dataset.event);
      const button = document.createElement("button");
      const mark = () => {
        const isMine = list().includes(id);
        button.textContent = isMine ? "★" : "☆";
        button.title = isMine ? remove : add;
        button.setAttribute("aria-pressed", isMine);
      };
      button.type = "button";
      button.className = "star";
      button.setAttribute("aria-label", `${add}: ${item.querySelector("h1, h2, h3").textContent}`);
      button.addEventListener("click", () => {
        const before = list();
        const others = read().filter(([known]) => known !== id);
        write(others.length < before.length ? others : [...others, [id, findEnd(item)]]);
        if (page && String(before) === String(shown)) show(list());
        mark();
      });
      mark();
      item.append(button);
    }
  };
  equip();
  const results = document.getElementById("live-results");
  if (results) new MutationObserver(equip).observe(results, { childList: true });

  if (!page) return;
  if (!shown.length && list().length) show(list());
  const missing = shown.filter((id) => !list().includes(id));
  const button = page.querySelector("button");
  if (button) button.hidden = !missing.length;
  button?.addEventListener("click", () => {
    write([...read(), ...missing.map((id) => [id, findEnd(document.querySelector(`[data-event="${id}"]`))])]);
    show(list());
  });
})();
