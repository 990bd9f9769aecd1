// Suggestions below the search field, as an ARIA combobox. site.js loads this when the field gets the focus.
"use strict";
(() => {
  const input = document.getElementById("q");
  const { form } = input;
  const known = new Map();
  let options = [];
  let chosen = -1;
  let timer;
  let request;

  const make = (tag, properties, ...children) => {
    const node = Object.assign(document.createElement(tag), properties);
    node.append(...children);
    return node;
  };
  const list = make("div", { id: "suggestions", role: "listbox", hidden: true, ariaLabel: input.labels[0].textContent });
  const status = make("span", { className: "visually-hidden", role: "status" });
  form.append(list, status);
  Object.assign(input, { role: "combobox", ariaAutoComplete: "list", ariaExpanded: "false", autocomplete: "off" });
  input.setAttribute("aria-controls", list.id);

  const choose = (index) => {
    if (options[chosen]) options[chosen].ariaSelected = null;
    chosen = index;
    const option = options[chosen];
    input.setAttribute("aria-activedescendant", option?.id ?? "");
    if (!option) return;
    option.ariaSelected = "true";
    option.scrollIntoView({ block: "nearest" });
  };

  const show = (groups) => {
    choose(-1);
    options = [];
    list.replaceChildren(...groups.map(({ label, items }) => {
      const links = items.map(({ name, note, url }) => {
        const link = make("a", { id: `suggestion-${options.length}`, role: "option", href: url, tabIndex: -1 });
        link.append(make("b", {}, name), " ", make("small", {}, note));
        options.push(link);
        return link;
      });
      return make("div", { role: "group", ariaLabel: label }, make("p", { ariaHidden: "true" }, label), ...links);
    }));
    list.hidden = !options.length;
    input.ariaExpanded = String(!list.hidden);
    status.textContent = options.length ? `${options.length}: ${form.dataset.found}` : "";
  };

  const close = () => {
    clearTimeout(timer);
    request?.abort();
    show([]);
  };

  const update = async () => {
    const q = input.value.trim();
    request?.abort();
    if (q.length < 2 || q.length > 60) return show([]);
    request = new AbortController();
    const lang = form.elements.lang?.value;
    try {
      if (!known.has(q)) {
        const query = new URLSearchParams({ q, ...(lang && { lang }) });
        const response = await fetch(`/events/suggest.json?${query}`, { signal: request.signal });
        if (!response.ok) return;
        known.set(q, await response.json());
      }
      if (q === input.value.trim() && document.activeElement === input) show(known.get(q));
    } catch {
      // A newer text has replaced this one, or the server is away: the form still searches.
    }
  };

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(update, 50);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const places = options.length + 1; // the last one is the field itself
    if (step && list.hidden) update();
    else if (step) choose((chosen + 1 + step + places) % places - 1);
    else if (event.key === "Enter" && options[chosen]) options[chosen].click();
    else if (event.key === "Escape" && !list.hidden) close();
    else return;
    event.preventDefault();
  });
  // A press on a suggestion leaves the focus in the field.
  list.addEventListener("mousedown", (event) => event.preventDefault());
  input.addEventListener("blur", close);
  update();
})();
