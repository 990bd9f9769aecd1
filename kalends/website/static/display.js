// The hall display: fetches itself every minute and after each message of a live list, tells the time, turns pages.
"use strict";
(() => {
  const { zone, region, stream, offline } = document.body.dataset;
  const [note, face, position] = [".offline", "header time", ".position"].map((part) => document.querySelector(part));
  const format = new Intl.DateTimeFormat(region, { timeZone: zone, hour: "numeric", minute: "2-digit" });
  const PAGE_TIME = 15_000;
  const PAUSE = 60_000; // after a touch or a key
  let content = document.querySelector("main").innerHTML;
  let offlineSince, source, timer, turnsAt;
  let isFetching = false;
  let isDue = false;
  let shown = 0;

  // Show one page of rows, as many as fit. On phones nothing is cut, so there is only one page.
  const turn = (to, pause = PAGE_TIME) => {
    const list = document.querySelector("main ol");
    const rows = [...list.children];
    for (const row of rows) row.hidden = false;
    const isCut = getComputedStyle(list).overflowY === "hidden";
    const pages = [];
    for (const row of rows) {
      const first = pages.at(-1)?.[0];
      if (first && (!isCut || row.offsetTop + row.offsetHeight - first.offsetTop <= list.clientHeight)) pages.at(-1).push(row);
      else pages.push([row]);
    }
    const before = shown;
    shown = pages.length ? to % pages.length : 0;
    for (const row of rows) row.hidden = !pages[shown].includes(row);
    position.textContent = pages.length > 1 ? `${shown + 1} / ${pages.length}` : "";
    if (shown !== before && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      list.animate([{ opacity: 0 }, { opacity: 1 }], 600);
    }
    turnsAt = Date.now() + pause;
  };

  const listFiles = (page) =>
    [...page.querySelectorAll("link[rel=stylesheet], script")].map((file) => file.getAttribute("href") ?? file.getAttribute("src")).join();

  const replaceContent = async () => {
    // Shared caches are asked whether the page is still valid.
    const response = await fetch(location.href, { cache: "no-cache", signal: AbortSignal.timeout(15_000) });
    if (!response.ok) throw new Error(response.statusText);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (listFiles(page) !== listFiles(document)) location.reload(); // The server has been upgraded.
    const main = page.querySelector("main");
    if (main.innerHTML === content) return;
    content = main.innerHTML;
    document.querySelector("main").replaceWith(main);
    turn(shown);
  };

  const update = async (isChange = false) => {
    isDue ||= isChange;
    if (isFetching) return;
    isFetching = true;
    clearTimeout(timer);
    const wasDue = isDue;
    isDue = false;
    try {
      await replaceContent();
      offlineSince = undefined;
    } catch {
      offlineSince ??= new Date();
    }
    note.hidden = !offlineSince;
    note.textContent = offlineSince ? offline.replace("{time}", format.format(offlineSince)) : "";
    isFetching = false;
    follow();
    // Marks change at full minutes. After a change, a shared cache may have responded with the former page.
    const nextMinute = 60_000 - (Date.now() % 60_000) + Math.random() * 3000;
    timer = setTimeout(update, isDue ? 0 : offlineSince ? 5000 : wasDue ? Math.min(2000, nextMinute) : nextMinute);
  };

  const follow = () => {
    if (!stream || source?.readyState < EventSource.CLOSED) return;
    source = new EventSource(stream);
    for (const name of ["snapshot", "change"]) source.addEventListener(name, () => update(true));
    source.addEventListener("end", () => source.close());
  };

  const tick = () => {
    face.textContent = format.format(new Date());
    if (Date.now() >= turnsAt) turn(shown + 1);
  };

  document.body.classList.add("is-paged");
  addEventListener("resize", () => turn(shown));
  for (const name of ["pointerdown", "keydown"]) addEventListener(name, () => turn(shown + 1, PAUSE));
  document.fonts.ready.then(() => turn(0));
  tick();
  setInterval(tick, 1000);
  update();
  navigator.wakeLock?.request("screen").catch(() => {});
})();
