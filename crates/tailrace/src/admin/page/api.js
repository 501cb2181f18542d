// Asks the agent. Nothing else is ever asked: every path is relative to the page.

const TIMEOUT_MS = 8000;
const KEY = 'tailrace-token';
let token = stored();

/** An answer that is no success. `status` is 0 if there was no answer. */
export class ApiError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }

  /** The agent wants a token, or another one. */
  get wantsToken() {
    return this.status === 401 || this.status === 403;
  }
}

function stored() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export function hasToken() {
  return token !== null;
}

/** Sends this token from now on; null forgets it. */
export function setToken(value) {
  token = value;
  try {
    if (value === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, value);
  } catch {
    // Storage is forbidden: it lasts until the page is loaded again.
  }
}

/** The text of an answer. Throws an ApiError. */
export async function getText(path) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  let response;
  let text;
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    response = await fetch(path, { headers, signal, cache: 'no-store', credentials: 'omit', redirect: 'error' });
    text = await response.text();
  } catch (error) {
    throw new ApiError(0, error.name === 'TimeoutError' ? 'no answer in time' : 'no connection');
  }
  if (!response.ok) throw new ApiError(response.status, reason(text) ?? `the agent answered ${response.status}`);
  return text;
}

/** The JSON of an answer. Throws an ApiError. */
export async function getJson(path) {
  const text = await getText(path);
  try {
    return JSON.parse(text);
  } catch {
    throw new ApiError(0, 'the answer is no JSON: is this a Tailrace agent?');
  }
}

function reason(text) {
  try {
    const { error } = JSON.parse(text);
    return typeof error === 'string' ? error : null;
  } catch {
    return null;
  }
}
