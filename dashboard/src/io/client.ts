/** HTTP client of the service, same origin only. */

/** An error response with the message of the service. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string;

  constructor(status: number, { code, message, param }: { readonly code: string; readonly message: string; readonly param: string }) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

export interface RequestOptions {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON, except `FormData`. */
  readonly body?: unknown;
  /** Resource version that the edit is based on. */
  readonly ifMatch?: string | null;
  /** Fails if the resource exists. */
  readonly ifNoneMatch?: '*';
  readonly lastEventId?: string;
  readonly signal?: AbortSignal;
  /** It may be sent twice. Default: only `GET`, and requests for a plan, may. */
  readonly mayRepeat?: boolean;
}

/** Chromium gives up all requests when a network interface of its machine comes or goes, as one of a container does. */
const REPEAT_MS = 300;

export interface Client {
  /**
   * Resolves with the JSON body; undefined if it is empty. Rejects with `ApiError`, or with `TypeError` if the
   * service is unreachable.
   */
  fetchJson<Answer>(path: string, options?: RequestOptions): Promise<Answer>;
  /** Resolves once the headers have arrived. Rejects as `fetchJson` does. */
  fetch(path: string, options?: RequestOptions): Promise<Response>;
  /** Browsers set no headers for a WebSocket, so the token is a subprotocol, as in OpenAI's client. */
  openSocket(path: string): WebSocket;
  /** Keeps the token in memory only. */
  setToken(token: string): void;
}

export function createClient(onUnauthorized: () => void): Client {
  let token = '';

  async function send(
    path: string,
    { method = 'GET', body, ifMatch, ifNoneMatch, lastEventId, signal }: RequestOptions,
  ): Promise<Response> {
    const sentToken = token;
    const headers = new Headers();
    if (token !== '') headers.set('authorization', `Bearer ${token}`);
    const isForm = body instanceof FormData;
    // The browser sets the content type of a form, with its boundary.
    if (body !== undefined && !isForm) headers.set('content-type', 'application/json');
    if (ifMatch !== undefined && ifMatch !== null) headers.set('if-match', `"${ifMatch}"`);
    if (ifNoneMatch !== undefined) headers.set('if-none-match', ifNoneMatch);
    if (lastEventId !== undefined && lastEventId !== '') headers.set('last-event-id', lastEventId);
    const init: RequestInit = { method, headers, cache: 'no-store' };
    if (body !== undefined) init.body = isForm ? body : JSON.stringify(body);
    if (signal !== undefined) init.signal = signal;
    const response = await fetch(path, init);
    if (response.ok) return response;
    // A request sent before the token was entered says nothing about it.
    if (response.status === 401 && token === sentToken) onUnauthorized();
    throw await errorOf(response);
  }

  /** Does it once more after a failure of the network. */
  async function repeated<Answer>(
    path: string,
    options: RequestOptions,
    work: (options: RequestOptions) => Promise<Answer>,
  ): Promise<Answer> {
    const { method = 'GET', mayRepeat = method === 'GET' || path === '/api/plan', signal } = options;
    try {
      return await work(options);
    } catch (error) {
      if (!mayRepeat || !(error instanceof TypeError) || signal?.aborted === true) throw error;
      await new Promise((resolve) => setTimeout(resolve, REPEAT_MS));
      return await work(options);
    }
  }

  return {
    fetch: (path, options = {}) => repeated(path, options, async (given) => await send(path, given)),
    fetchJson: (path, options = {}) =>
      repeated(path, options, async (given) => {
        const text = await (await send(path, given)).text();
        return text === '' ? undefined : JSON.parse(text);
      }),
    openSocket: (path) =>
      new WebSocket(location.origin.replace(/^http/, 'ws') + path, [
        'realtime',
        ...(token === '' ? [] : [`openai-insecure-api-key.${token}`]),
      ]),
    setToken(next) {
      token = next.trim();
    },
  };
}

async function errorOf(response: Response): Promise<ApiError> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    return new ApiError(response.status, {
      code: String(error.code ?? ''),
      message: String(error.message ?? response.statusText),
      param: String(error.param ?? ''),
    });
  } catch {
    // A proxy may respond with a page of its own.
    return new ApiError(response.status, { code: '', message: `${response.status} ${response.statusText}`, param: '' });
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
