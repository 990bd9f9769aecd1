// Progressive enhancement of the week: the line at the current time, and details of an event beside it.
"use strict";
(() => {
  const column = document.querySelector(".blocks[data-slots]");
  if (column) {
    // The Unix times at which each row begins and the last one ends. A row may have several hours, or none of this day.
    const slots = column.dataset.slots.split(",").map(Number);
    const line = document.createElement("li");
    line.className = "now";
    line.ariaHidden = "true";
    column.append(line);
    const move = () => {
      const now = Date.now() / 1000;
      const row = slots.findLastIndex((begin) => begin <= now);
      line.hidden = row < 0 || row === slots.length - 1;
      line.style.top = `calc(var(--hour) * ${row + (now - slots[row]) / (slots[row + 1] - slots[row])})`;
    };
    move();
    setInterval(move, 60_000);
  }

  // Without a pointer that hovers, or on small screens, a tap opens the page of the event instead.
  const week = document.querySelector(".week");
  const isWide = matchMedia("(min-width: 60.01em) and (hover: hover)");
  const details = new Map();
  let popover, timer;

  const make = (tag, properties, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };

  const read = async (url) => {
    const response = await fetch(url);
    if (!response.ok) throw new Error(response.status);
    const event = new DOMParser().parseFromString(await response.text(), "text/html");
    const fact = (name) => event.querySelector(`[data-fact=${name}] dd`)?.firstChild?.textContent ?? "";
    const image = event.querySelector("img.hero");
    const calendar = event.querySelector("main a[href$='.ics']")?.href;
    const time = event.querySelector("main time");
    for (const line of time.querySelectorAll("br")) line.replaceWith(" ");
    const parts = [make("h3", {}, event.querySelector("h1").textContent), make("p", {}, time.textContent)];
    if (image) parts.unshift(make("img", { src: image.src, srcset: image.srcset, sizes: "19rem", alt: "" }));
    for (const text of [fact("Where"), fact("Cost")]) if (text) parts.push(make("p", {}, text));
    if (calendar) parts.push(make("a", { className: "button secondary", href: calendar }, week.dataset.add));
    return parts;
  };

  const close = () => {
    clearTimeout(timer);
    popover?.remove();
    popover = undefined;
  };

  const open = async (link) => {
    const { href } = link;
    if (!details.has(href)) details.set(href, read(href));
    const parts = await details.get(href).catch(() => details.delete(href));
    if (!Array.isArray(parts)) return;
    if (!link.matches(":hover, :focus") || popover?.previousSibling === link) return;
    close();
    popover = make("div", { className: "popover event-popover", popover: "manual", role: "dialog" }, ...parts);
    popover.setAttribute("aria-label", parts.find((part) => part.tagName === "H3").textContent);
    link.after(popover);
    popover.showPopover();
    const { left, right, top } = link.getBoundingClientRect();
    const isRight = right + popover.offsetWidth + 8 < innerWidth;
    popover.style.left = `${Math.max(8, isRight ? right + 4 : left - popover.offsetWidth - 4)}px`;
    popover.style.top = `${Math.max(8, Math.min(top, innerHeight - popover.offsetHeight - 8))}px`;
  };

  const plan = (work, delay) => {
    clearTimeout(timer);
    timer = setTimeout(work, delay);
  };
  const isInside = (node) => popover && node instanceof Node && popover.parentNode.contains(node);

  for (const type of ["pointerover", "focusin"]) {
    week.addEventListener(type, (event) => {
      const link = event.target.closest(".blocks li:not(.rest, .more-link) > a, .week-bars a");
      if (isInside(event.target)) clearTimeout(timer);
      // Where anything fails, the link still leads to the event.
      else if (link && isWide.matches && link.showPopover) plan(() => open(link).catch(() => undefined), 300);
    });
  }
  for (const type of ["pointerout", "focusout"]) {
    week.addEventListener(type, (event) => {
      if (!isInside(event.relatedTarget)) plan(close, 200);
    });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (popover?.contains(document.activeElement)) popover.previousSibling.focus();
    close();
  });
})();
