/** Requests to the service, on the origin of the page alone. */

/** An answer other than success, in the words of the service. */
export class ApiProblem extends Error {
  readonly status: number;
  readonly code: string;
  readonly param: string;

  constructor(status: number, { code, message, param }: { readonly code: string; readonly message: string; readonly param: string }) {
    super(message);
    this.name = 'ApiProblem';
    this.status = status;
    this.code = code;
    this.param = param;
  }
}

export interface Sent {
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Sent as JSON; a form as it is. */
  readonly body?: unknown;
  /** The resource version that an edit was made from. */
  readonly ifMatch?: string | null;
  /** Creates only. */
  readonly ifNoneMatch?: '*';
  readonly lastEventId?: string;
  readonly signal?: AbortSignal;
}

export interface Client {
  /** The body of the answer as JSON; undefined without one. Throws `ApiProblem`, or a `TypeError` if the service cannot be reached. */
  ask<Answer>(path: string, sent?: Sent): Promise<Answer>;
  /** The answer, before its body is read. Throws as `ask` does. */
  open(path: string, sent?: Sent): Promise<Response>;
  /** The token that a person typed; it is kept in memory only and is gone when the page is. */
  useToken(token: string): void;
}

export function createClient(onRefused: () => void): Client {
  let token = '';

  async function open(path: string, { method = 'GET', body, ifMatch, ifNoneMatch, lastEventId, signal }: Sent = {}): Promise<Response> {
    const sentToken = token;
    const headers = new Headers();
    if (token !== '') headers.set('authorization', `Bearer ${token}`);
    const isForm = body instanceof FormData;
    // The browser writes the type of a form, which has the boundary of its parts.
    if (body !== undefined && !isForm) headers.set('content-type', 'application/json');
    if (ifMatch !== undefined && ifMatch !== null) headers.set('if-match', `"${ifMatch}"`);
    if (ifNoneMatch !== undefined) headers.set('if-none-match', ifNoneMatch);
    if (lastEventId !== undefined && lastEventId !== '') headers.set('last-event-id', lastEventId);
    const init: RequestInit = { method, headers, cache: 'no-store' };
    if (body !== undefined) init.body = isForm ? body : JSON.stringify(body);
    if (signal !== undefined) init.signal = signal;
    const response = await fetch(path, init);
    if (response.ok) return response;
    // A request that was sent before a person typed a token says nothing about the token.
    if (response.status === 401 && token === sentToken) onRefused();
    throw await problemOf(response);
  }

  return {
    open,
    async ask(path, sent) {
      const response = await open(path, sent);
      const text = await response.text();
      return text === '' ? undefined : JSON.parse(text);
    },
    useToken(next) {
      token = next.trim();
    },
  };
}

async function problemOf(response: Response): Promise<ApiProblem> {
  const text = await response.text();
  try {
    const { error } = JSON.parse(text);
    return new ApiProblem(response.status, {
      code: String(error.code ?? ''),
      message: String(error.message ?? response.statusText),
      param: String(error.param ?? ''),
    });
  } catch {
    // A proxy in between answers with a page of its own.
    return new ApiProblem(response.status, { code: '', message: `${response.status} ${response.statusText}`, param: '' });
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
