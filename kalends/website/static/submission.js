// Shows events that are probably the same while the form is filled in, and checks the size of the picture.
"use strict";
(() => {
  const form = document.querySelector("form[data-similar]");
  if (!form) return;
  const box = document.getElementById("similar");
  const list = box.querySelector("ul");
  const isFixed = !box.hidden; // The server has found similar events: the box beside them must stay.
  const names = ["title", "start_day", "start_time", "venue", "city"];
  let timer;
  let request;

  const show = (events) => {
    list.replaceChildren(...events.map(({ title, when, url }) => {
      const link = Object.assign(document.createElement("a"), { href: url, target: "_blank", rel: "noopener", textContent: title });
      const note = Object.assign(document.createElement("small"), { textContent: when });
      const entry = document.createElement("li");
      entry.append(link, " ", note);
      return entry;
    }));
    box.hidden = !events.length;
  };

  const update = async () => {
    request?.abort();
    const values = names.map((name) => [name, form.elements[name].value.trim()]).filter(([, value]) => value);
    const known = Object.fromEntries(values);
    if (!known.title || !known.start_day) return show([]);
    if (form.elements.all_day.checked) values.push(["all_day", "1"]);
    const language = new URLSearchParams(location.search).get("lang");
    if (language) values.push(["lang", language]);
    request = new AbortController();
    try {
      const response = await fetch(`${form.dataset.similar}?${new URLSearchParams(values)}`, { signal: request.signal });
      if (response.ok) show(await response.json());
    } catch {
      // A newer text has replaced this one, or the server is away: it looks for similar events again when the form is sent.
    }
  };

  if (!isFixed) {
    form.addEventListener("input", ({ target }) => {
      if (!names.includes(target.name) && target.name !== "all_day") return;
      clearTimeout(timer);
      timer = setTimeout(update, 600);
    });
  }
  form.elements.all_day.addEventListener("change", ({ target }) => {
    for (const name of ["start_time", "end_time"]) form.elements[name].disabled = target.checked;
  });
})();
