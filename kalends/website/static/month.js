// Progressive enhancement of the month: the whole day in a popover.
"use strict";
(() => {
  const texts = document.body.dataset;

  // "26 more" opens the whole day above the month. Where anything fails, it stays a link to the day.
  const readDay = async (url) => {
    const items = [];
    let heading;
    for (let pages = 0; url && pages < 5; pages += 1) {
      const response = await fetch(url);
      if (!response.ok) throw new Error(response.status);
      const day = new DOMParser().parseFromString(await response.text(), "text/html");
      heading ??= day.querySelector("h1").textContent;
      for (const card of day.querySelectorAll(".card")) {
        const link = document.createElement("a");
        const time = document.createElement("span");
        time.className = "time";
        time.textContent = card.querySelector("time").textContent;
        const title = card.querySelector("a");
        link.href = title.getAttribute("href");
        link.append(time, " ", ...title.cloneNode(true).childNodes);
        const item = document.createElement("li");
        item.className = card.className.match(/\bh\d+/)[0];
        item.append(link);
        items.push(item);
      }
      url = day.querySelector(".pagination [rel=next]")?.getAttribute("href");
    }
    return [heading, items];
  };

  const openDay = async (link) => {
    const [title, items] = await readDay(link.href);
    document.querySelector(".day-popover")?.remove();
    const popover = Object.assign(document.createElement("div"), { className: "popover day-popover", popover: "auto" });
    const heading = document.createElement("h2");
    heading.id = "day-heading";
    const whole = Object.assign(document.createElement("a"), { href: link.href, textContent: title });
    whole.target = link.target;
    heading.append(whole);
    const close = Object.assign(document.createElement("button"), { type: "button", textContent: "×" });
    close.setAttribute("aria-label", texts.close);
    close.addEventListener("click", () => popover.hidePopover());
    const list = document.createElement("ul");
    list.append(...items);
    popover.setAttribute("role", "dialog");
    popover.setAttribute("aria-labelledby", heading.id);
    popover.append(heading, close, list);
    link.after(popover);
    popover.showPopover();
    const { left, bottom } = link.getBoundingClientRect();
    popover.style.left = `${Math.max(8, Math.min(left, innerWidth - popover.offsetWidth - 8))}px`;
    popover.style.top = `${Math.max(8, Math.min(bottom - 60, innerHeight - popover.offsetHeight - 8))}px`;
    whole.focus();
  };

  for (const link of document.querySelectorAll(".month .more-link")) {
    link.addEventListener("click", (event) => {
      if (event.button || event.ctrlKey || event.metaKey || event.shiftKey || !link.showPopover) return;
      event.preventDefault();
      openDay(link).catch(() => open(link.href, "_self"));
    });
  }
})();
