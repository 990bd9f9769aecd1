// Results, counts and lists of names follow the filters while they are chosen.
"use strict";
(() => {
  const form = document.getElementById("filters");
  let request;
  let timer;

  const count = (input) => input?.closest("label").querySelector("small");

  // The lists of checkboxes keep their order while they are used, only their numbers change.
  const updateCounts = (part, fresh) => {
    for (const input of part.querySelectorAll("input")) {
      const twin = fresh.querySelector(`[value="${CSS.escape(input.value)}"]`);
      count(input).textContent = count(twin)?.textContent ?? "0";
    }
  };

  const update = async (searched) => {
    const pairs = [...new FormData(form)].filter(([name, value]) => value && (name !== "geoloc_radius" || form.near.value));
    request?.abort();
    request = new AbortController();
    try {
      const response = await fetch(`${form.action}?${new URLSearchParams(pairs)}`, { signal: request.signal });
      if (!response.ok) return;
      const page = new DOMParser().parseFromString(await response.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const fresh = page.getElementById(part.id);
        if (!fresh) continue;
        if (part.closest("fieldset") && part.closest("fieldset") !== searched) updateCounts(part, fresh);
        else part.replaceChildren(...fresh.childNodes);
      }
      const query = new URLSearchParams(pairs.filter(([name]) => !name.startsWith("find_")));
      history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
    } catch (error) {
      // A newer request has replaced this one, or the server is away: the button still submits the form.
      if (error.name !== "AbortError") request = undefined;
    }
  };

  form.addEventListener("input", ({ target }) => {
    clearTimeout(timer);
    const searched = target.name.startsWith("find_") ? target.closest("fieldset") : undefined;
    timer = setTimeout(update, target.type === "checkbox" ? 0 : 300, searched);
  });
  form.addEventListener("submit", (event) => {
    if (!request || !form.matches(":popover-open")) return;
    event.preventDefault();
    form.hidePopover();
  });
})();
