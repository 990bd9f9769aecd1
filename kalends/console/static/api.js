// Requests to the API of this site, with the session of the user.

const { api, extension } = document.body.dataset;

/** Send a request and return its JSON and ETag; throw an ApiError if it failed. */
export async function call(method, path, { body, query, ifMatch, isExtension = false, signal } = {}) {
  const url = new URL((isExtension ? extension : api) + path, location.origin);
  for (const [name, value] of Object.entries(query ?? {})) url.searchParams.set(name, value);
  const headers = { Accept: "application/json" };
  if (body && !(body instanceof FormData)) headers["Content-Type"] = "application/json";
  if (ifMatch) headers["If-Match"] = `"${ifMatch}-"`;
  const response = await fetch(url, {
    method, headers, signal, cache: "no-store", credentials: "same-origin",
    body: body instanceof FormData ? body : body && JSON.stringify(body),
  });
  const data = await response.json();
  if (!response.ok) throw new ApiError(response.status, data);
  return { data, etag: response.headers.get("ETag") };
}

/** The error of a response: its status, code and message, and the messages by parameter. */
export class ApiError extends Error {
  constructor(status, { code, message, data }) {
    super(message);
    Object.assign(this, { status, code, params: data?.params ?? {} });
  }
}

/** Return a function that calls another one once no further call came for a while. */
export function debounce(callback, milliseconds) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => callback(...values), milliseconds);
  };
}
