/** Finds the credential of a request in its raw headers. Pure. */

export type Credential =
  | { readonly kind: 'none' }
  /** As presented; it may have any form. */
  | { readonly kind: 'bearer'; readonly token: string }
  /** Two different credentials, of which none may be preferred. */
  | { readonly kind: 'ambiguous' }
  /** A proxy has authenticated this user. */
  | { readonly kind: 'email'; readonly email: string };

export interface ProxyTrust {
  /** Whether the peer of the connection is a trusted proxy. Asked only about requests that forward an address. */
  isProxy(): boolean;
  /** Whether the given value is the secret of the proxy; always true where none is set. Undefined: the request has no such header. */
  matchesSecret(value: string | undefined): boolean;
}

/** The headers that matter, in lower case. With the last one, the proxy proves itself where `SVC_PROXY_SECRET` is set. */
const HEADERS = ['authorization', 'x-api-key', 'x-forwarded-email', 'x-svc-proxy-secret'] as const;
/** Their lengths all differ, so that other headers of a request cost next to nothing. */
const BY_LENGTH: readonly (string | undefined)[] = Array.from({ length: 20 }, (_, length) =>
  HEADERS.find((name) => name.length === length),
);

/** Schemes are compared without regard to case: RFC 9110, 11.1. */
const BEARER = /^bearer(?: +|$)/i;

/**
 * `rawHeaders` are names and values in turn, as Node gives them. A bearer token counts more than an e-mail address, also when it is not valid. `x-api-key`, which Anthropic's
 * clients send, is a bearer token too. Other schemes of `Authorization` count as absent: a proxy may pass on the `Basic` that it has checked.
 */
export function readCredential(rawHeaders: readonly string[], trust: ProxyTrust): Credential {
  let token: string | undefined;
  let isAmbiguous = false;
  let [email, emails] = ['', 0];
  let [secret, secrets]: [string | undefined, number] = [undefined, 0];
  const addToken = (added: string): void => {
    isAmbiguous ||= token !== undefined && token !== added;
    token = added;
  };
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] ?? '';
    const known = BY_LENGTH[name.length];
    if (known === undefined || known !== name.toLowerCase()) continue;
    const value = rawHeaders[index + 1] ?? '';
    if (known === 'authorization') {
      const [scheme] = BEARER.exec(value) ?? [];
      if (scheme !== undefined) addToken(value.slice(scheme.length).trim());
    } else if (known === 'x-api-key') addToken(value.trim());
    else if (known === 'x-forwarded-email') [email, emails] = [value.trim(), emails + 1];
    else [secret, secrets] = [value, secrets + 1];
  }
  if (isAmbiguous) return { kind: 'ambiguous' };
  if (token !== undefined) return { kind: 'bearer', token };
  // Repeated headers mean that somebody added one to that of the proxy.
  if (email === '' || emails > 1 || secrets > 1) return { kind: 'none' };
  return trust.isProxy() && trust.matchesSecret(secret) ? { kind: 'email', email } : { kind: 'none' };
}
