// Passkeys: registering one, and proving the identity with one. Without support in the browser, nothing is shown.

const isSupported = Boolean(window.PublicKeyCredential?.parseRequestOptionsFromJSON);
// Options are valid for five minutes on the server.
const OPTIONS_AGE = 4 * 60 * 1000;

async function post(path, body = {}) {
  const response = await fetch(path, {
    method: "POST", cache: "no-store", credentials: "same-origin", body: JSON.stringify(body),
    headers: { Accept: "application/json", "Content-Type": "application/json" },
  });
  const data = await response.json();
  if (!response.ok) throw new RequestError(data.message);
  return data;
}

/** An error with a message of the server, in the language of the page. */
class RequestError extends Error {}

function showError(area, error) {
  const isCancelled = error.name === "AbortError";
  area.querySelector("[role=alert]").textContent =
    isCancelled ? "" : error instanceof RequestError ? error.message : area.dataset.failed;
}

let pending = new AbortController();

/** Request a signature and continue with the page that the server names. */
async function prove(area, mediation) {
  pending.abort();
  pending = new AbortController();
  const { signal } = pending;
  const path = area.dataset.passkeyGet;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(await post(`${path}/options`));
  const credential = await navigator.credentials.get({ publicKey, mediation, signal });
  const { next } = await post(path, { credential: credential.toJSON(), next: area.dataset.next });
  location.assign(next);
}

/** Offer passkeys in the list of stored logins of the browser, with new options before the old ones expire. */
async function offer(area) {
  const timer = setTimeout(() => offer(area), OPTIONS_AGE);
  try {
    await prove(area, "conditional");
  } catch (error) {
    if (error.name === "AbortError" || error.name === "NotAllowedError") return;
    clearTimeout(timer);
    showError(area, error);
  }
}

async function startProof(area) {
  area.hidden = false;
  area.querySelector("button").addEventListener("click", () => {
    showError(area, new DOMException("", "AbortError"));
    prove(area, "optional").catch((error) => showError(area, error));
  });
  if ("conditional" in area.dataset && await PublicKeyCredential.isConditionalMediationAvailable?.()) offer(area);
}

function startRegistration(area) {
  area.hidden = false;
  area.addEventListener("submit", async (event) => {
    event.preventDefault();
    const path = area.getAttribute("action");
    try {
      const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(await post(`${path}/options`));
      const credential = await navigator.credentials.create({ publicKey });
      const name = new FormData(area).get("passkey-name");
      const { next } = await post(path, { credential: credential.toJSON(), name });
      location.assign(next);
    } catch (error) {
      showError(area, error);
    }
  });
}

if (isSupported) {
  for (const area of document.querySelectorAll("[data-passkey-get]")) startProof(area);
  for (const area of document.querySelectorAll("[data-passkey-create]")) startRegistration(area);
}
