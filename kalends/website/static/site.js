// What script adds to a page that works without it: the visitor's own clock, maps after consent, copying, frames.
"use strict";
(() => {
  const say = document.body.dataset;
  const mine = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const language = document.documentElement.lang;

  // The offset of a zone at an instant, as text; undefined for zones that the browser does not know.
  const offset = (zone, at) => {
    try {
      return new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).format(at).split(", ")[1];
    } catch {
      return undefined;
    }
  };

  // Times on the visitor's clock, where it shows something else than the event's.
  for (const time of document.querySelectorAll(".event header time[data-zone], .card time[data-zone]")) {
    const start = new Date(time.dateTime);
    const end = new Date(time.dataset.end);
    if (isNaN(start) || isNaN(end)) continue;
    const theirs = /([+-]\d\d:\d\d)$/.exec(time.dateTime)?.[1];
    const ours = (offset(mine, start) ?? "").replace("GMT", "") || "+00:00";
    if (theirs === ours) continue;
    const otherDay = start.toLocaleDateString("sv", { timeZone: mine }) !== time.dateTime.slice(0, 10);
    const tell = (at, day) => at.toLocaleString(language, { timeZone: mine, hour: "numeric", minute: "2-digit", ...day });
    const long = "long" in time.dataset && { day: "numeric", month: "short" };
    const first = long || (otherDay && { weekday: "short", day: "numeric", month: "short" });
    const text = start < end ? `${tell(start, first)} – ${tell(end, long)}` : tell(start, first);
    const line = document.createElement("span");
    line.className = "yours";
    line.textContent = say.yours.replace("{time}", text);
    time.append(line);
  }

  // A field that is only there to be copied.
  for (const field of document.querySelectorAll("[data-copy]")) {
    field.addEventListener("focus", () => field.select());
    field.addEventListener("click", async () => {
      field.select();
      try {
        await navigator.clipboard.writeText(field.value);
        field.setAttribute("aria-description", say.copied);
      } catch {
        // It is selected; the visitor can copy it.
      }
    });
  }

  // A menu closes when the visitor turns to something else, and with Escape.
  for (const menu of document.querySelectorAll("details.menu")) {
    document.addEventListener("click", (event) => menu.contains(event.target) || (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }

  // Maps. Nothing is asked of the host of the pictures before the visitor agrees; that is remembered here.
  const AGREED = "kalends-map";
  const remembered = () => { try { return localStorage.getItem(AGREED); } catch { return null; } };
  const remember = (host) => { try { localStorage.setItem(AGREED, host); } catch { /* only this once, then */ } };
  const load = (tag, attributes) => new Promise((resolve, reject) => {
    const node = Object.assign(document.createElement(tag), attributes, { onload: resolve, onerror: reject });
    document.head.append(node);
  });

  const draw = async (box) => {
    const { tiles, credit, script, style, label } = box.dataset;
    // Of each place: where it is, and the numbers of the cards that are there, or its name.
    const points = JSON.parse(box.dataset.points);
    const cards = document.querySelectorAll(".beside .card");
    await Promise.all([load("link", { rel: "stylesheet", href: style }), window.L || load("script", { src: script })]);
    box.replaceChildren();
    box.classList.add("live");
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", label);
    const lively = !matchMedia("(prefers-reduced-motion: reduce)").matches;
    const map = L.map(box, { zoomAnimation: lively, fadeAnimation: lively, markerZoomAnimation: lively });
    map.attributionControl.setPrefix(false);
    const source = document.createElement("span");
    source.textContent = credit;
    L.tileLayer(tiles, { maxZoom: 19, attribution: source.innerHTML }).addTo(map);
    map.fitBounds(points.map(([lat, lng]) => [lat, lng]), { maxZoom: 15, padding: [30, 30] });
    for (const [lat, lng, rows] of points) {
      const popup = document.createElement("div");
      const names = rows.map((row) => {
        const line = document.createElement("p");
        const card = cards[row];
        const link = card ? card.querySelector(".what a").cloneNode(true) : document.createElement("b");
        if (!card) link.textContent = row;
        line.append(link);
        if (card) {
          const when = card.querySelector("time").cloneNode(true);
          when.querySelector(".yours")?.remove();
          line.append(document.createElement("br"), when.textContent);
        }
        popup.append(line);
        return link.textContent;
      });
      const title = names.join(", ");
      const icon = L.divIcon({ className: "pin", html: rows.length > 1 ? `<b>${rows.length}</b>` : "" });
      const marker = L.marker([lat, lng], { icon, title }).addTo(map).bindPopup(popup, { maxHeight: 240 });
      marker.getElement().setAttribute("aria-label", title);
    }
  };

  for (const box of document.querySelectorAll(".map[data-tiles]")) {
    const button = box.querySelector("button");
    const host = new URL(box.dataset.tiles).host;
    if (!JSON.parse(box.dataset.points).length) continue;
    button.hidden = false;
    button.addEventListener("click", () => { remember(host); draw(box); });
    if (remembered() === host) draw(box);
  }

  // In a frame: the page that shows it is told how high it is.
  if (window.parent !== window) {
    const tell = () => parent.postMessage({ kalends: document.body.offsetHeight }, "*");
    new ResizeObserver(tell).observe(document.body);
    tell();
  }
})();
