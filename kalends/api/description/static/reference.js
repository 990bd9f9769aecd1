// The reference page: choosing a language, finding a route, and requests to try. Everything else is plain HTML.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

$(".language select").addEventListener("change", (event) => event.target.form.submit());

// On a phone the contents begin closed.
if (matchMedia("(max-width: 52rem)").matches) $(".contents").open = false;

$("#find").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const row of all("nav li")) row.hidden = !words.every((word) => row.dataset.find.includes(word));
  for (const list of all("nav ul")) {
    const empty = all("li:not([hidden])", list).length === 0;
    list.hidden = empty;
    list.previousElementSibling.hidden = empty;
  }
});

// A link to an operation opens it. Some browsers do this themselves.
function reveal() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const operation = target && target.closest(".operation");
  if (!operation || operation.open) return;
  operation.open = true;
  target.scrollIntoView();
}
addEventListener("hashchange", reveal);
reveal();
for (const link of all("nav li a")) {
  // A second click on the same link changes no hash.
  link.addEventListener("click", () => setTimeout(reveal));
}

function request(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  const headers = { "Accept-Language": document.documentElement.lang };
  for (const input of all("input", form)) {
    if (input.value === "") continue;
    if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.in === "header") headers[input.name] = input.value;
    else query.append(input.name, input.value);
  }
  const login = $("#login").value;
  if (login) {
    const bytes = new TextEncoder().encode(`${login}:${$("#password").value}`);
    headers.Authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  }
  const options = { method: form.dataset.method, headers, credentials: "omit" };
  const body = $("textarea", form);
  if (body) {
    headers["Content-Type"] = "application/json";
    options.body = body.value;
  }
  const text = query.toString();
  return [text ? `${path}?${text}` : path, options];
}

function line(tag, text) {
  const element = document.createElement(tag);
  element.textContent = text;
  return element;
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

async function send(form) {
  const output = $("output", form);
  const [address, options] = request(form);
  output.replaceChildren(line("p", `${options.method} ${address}`));
  try {
    const started = performance.now();
    const answer = await fetch(address, options);
    const text = await answer.text();
    const took = Math.round(performance.now() - started);
    output.append(line("p", `${answer.status} ${answer.statusText} · ${took} ms`));
    const names = ["etag", "location", "x-tec-total", "x-tec-totalpages", "x-kalends-ignored-params", "x-request-id", "retry-after"];
    const shown = names.filter((name) => answer.headers.has(name)).map((name) => `${name}: ${answer.headers.get(name)}`);
    output.append(line("pre", `${shown.join("\n")}\n\n${pretty(text)}`.trim()));
  } catch {
    output.append(line("p", document.body.dataset.failed));
  }
}

for (const form of all(".try-it")) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send(form);
  });
}
