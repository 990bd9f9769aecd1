// Progressive enhancement: the visitor's local time, maps after consent, copy fields, menus, frame height.
"use strict";
(() => {
  const texts = document.body.dataset;
  document.documentElement.classList.add("has-script");
  const visitorZone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const language = document.documentElement.lang;

  // Return the UTC offset of a zone at an instant, as text; undefined if the browser does not know the zone.
  const offset = (zone, at) => {
    try {
      return new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "longOffset" }).format(at).split(", ")[1];
    } catch {
      return undefined;
    }
  };

  // Add the visitor's local time where it differs from that of the event.
  for (const time of document.querySelectorAll(".event time[data-zone], .card time[data-zone], .tile time[data-zone]")) {
    const start = new Date(time.dateTime);
    const end = new Date(time.dataset.end);
    if (isNaN(start) || isNaN(end)) continue;
    const eventOffset = /([+-]\d\d:\d\d)$/.exec(time.dateTime)?.[1];
    const visitorOffset = (offset(visitorZone, start) ?? "").replace("GMT", "") || "+00:00";
    if (eventOffset === visitorOffset) continue;
    const otherDay = start.toLocaleDateString("sv", { timeZone: visitorZone }) !== time.dateTime.slice(0, 10);
    const format = (at, day) =>
      at.toLocaleString(language, { timeZone: visitorZone, hour: "numeric", minute: "2-digit", ...day });
    const multiDay = "multiDay" in time.dataset && { day: "numeric", month: "short" };
    const first = multiDay || (otherDay && { weekday: "short", day: "numeric", month: "short" });
    const text = start < end ? `${format(start, first)} – ${format(end, multiDay)}` : format(start, first);
    const line = document.createElement("span");
    line.className = "visitor-time";
    line.textContent = texts.visitorTime.replace("{time}", text);
    time.append(line);
  }

  // Copy fields are selected and copied by a click on the field or on the button after it.
  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copies]");
    const field = button ? button.parentElement.querySelector("[data-copy]") : target.closest("[data-copy]");
    if (!field) return;
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      field.setAttribute("aria-description", texts.copied);
      if (button) button.textContent = texts.copied;
    } catch {
      // Without clipboard access, the visitor can still copy the selected text.
    }
  });

  // The page is shared by the means of the device; where there are none, its address is copied.
  for (const button of document.querySelectorAll("[data-share]")) {
    const url = document.querySelector("link[rel=canonical]")?.href ?? location.href;
    button.addEventListener("click", async () => {
      try {
        if (navigator.share) await navigator.share({ title: document.title, url });
        else {
          await navigator.clipboard.writeText(url);
          button.textContent = texts.copied;
        }
      } catch {
        // The visitor changed their mind, or nothing may be copied.
      }
    });
  }

  // Offer the language that the visitor prefers, once, unless they chose one. The page itself is the same for everybody.
  const OFFER_KEY = "kalends-language";
  const findOffer = () => {
    const links = [...document.querySelectorAll(".languages [data-offer]")];
    const primary = (tag) => tag.toLowerCase().split("-")[0];
    for (const tag of navigator.languages) {
      if (primary(tag) === primary(language)) return undefined;
      const link = links.find((one) => primary(one.hreflang) === primary(tag));
      if (link) return link;
    }
    return undefined;
  };
  const isAnswered = () => { try { return localStorage.getItem(OFFER_KEY); } catch { return "1"; } };
  const offered = /[?&]lang=/.test(location.search) || isAnswered() ? undefined : findOffer();
  if (offered) {
    const line = Object.assign(document.createElement("p"), { className: "language-offer popover" });
    const link = Object.assign(document.createElement("a"), { href: offered.href, lang: offered.lang, textContent: offered.dataset.offer });
    const close = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: "×" });
    close.setAttribute("aria-label", texts.close);
    const answer = () => { localStorage.setItem(OFFER_KEY, "1"); line.remove(); };
    link.addEventListener("click", answer);
    close.addEventListener("click", answer);
    line.append(link, close);
    document.querySelector(".languages").append(line);
  }

  // Menus close on a click outside and on Escape.
  for (const menu of document.querySelectorAll("details.menu")) {
    document.addEventListener("click", (event) => menu.contains(event.target) || (menu.open = false));
    menu.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      menu.open = false;
      menu.querySelector("summary").focus();
    });
  }

  // Maps load nothing from the tile server before the visitor consents; the consent is stored in the browser.
  const CONSENT_KEY = "kalends-map";
  const remembered = () => { try { return localStorage.getItem(CONSENT_KEY); } catch { return null; } };
  // Without storage, the consent is valid for this page only.
  const remember = (host) => { try { localStorage.setItem(CONSENT_KEY, host); } catch { return; } };
  const load = (tag, attributes) => new Promise((resolve, reject) => {
    const node = Object.assign(document.createElement(tag), attributes, { onload: resolve, onerror: reject });
    document.head.append(node);
  });

  // Suggestions are loaded when the visitor goes to the search field.
  const field = document.querySelector("[data-suggest]");
  field?.addEventListener("focusin", () => {
    load("link", { rel: "stylesheet", href: field.dataset.style });
    load("script", { src: field.dataset.suggest });
  }, { once: true });

  const draw = async (box) => {
    const { leaflet, style, script } = box.dataset;
    await Promise.all([
      load("link", { rel: "stylesheet", href: style }),
      window.L || load("script", { src: leaflet }),
      window.drawMap || load("script", { src: script }),
    ]);
    drawMap(box);
  };

  for (const box of document.querySelectorAll(".map[data-tiles]")) {
    const button = box.querySelector("button");
    const host = new URL(box.dataset.tiles).host;
    // An area without events still has a map, on which the visitor can move on.
    if (!JSON.parse(box.dataset.points).length && !(box.dataset.searchLabel && location.search.includes("geoloc_lat="))) continue;
    button.hidden = false;
    button.addEventListener("click", () => { remember(host); draw(box); });
    if (remembered() === host) draw(box);
  }

  // In a frame, post the height of the page to the embedding page.
  if (window.parent !== window) {
    const postHeight = () => parent.postMessage({ kalends: document.body.offsetHeight }, "*");
    new ResizeObserver(postHeight).observe(document.body);
    postHeight();
  }
})();
