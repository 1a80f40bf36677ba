/** Whether a caller may use a route. Pure. */
import { GRANTS, SCOPES, type Access, type Scope } from '../../schema/words/names.ts';

/** Who sends a request: the label of a token, or the e-mail address that a proxy forwards. */
export interface Caller {
  readonly identity: string;
  readonly scope: Scope;
}

export type AccessDecision =
  /** The caller is not known where a route is open. */
  | { readonly ok: true; readonly caller?: Caller }
  | {
      readonly ok: false;
      readonly code: 'auth.required' | 'auth.invalid' | 'auth.scope' | 'auth.busy' | 'server.starting';
      readonly message: string;
    };

/** Root, or the user of the service, who could change the tokens as well. */
export const LOCAL: Caller = { identity: 'local', scope: 'admin' };

export const ALLOWED: AccessDecision = { ok: true };
/** The caller of a service without authentication. */
export const ANYONE: AccessDecision = { ok: true, caller: { identity: 'anyone', scope: 'admin' } };

export const REQUIRED: AccessDecision = {
  ok: false,
  code: 'auth.required',
  message: 'Send a token as "Authorization: Bearer svc_…": authentication is on, and the request has no credential',
};
export const INVALID: AccessDecision = {
  ok: false,
  code: 'auth.invalid',
  message: 'Use another token: this one is unknown, was revoked, or is not complete',
};
export const AMBIGUOUS: AccessDecision = {
  ok: false,
  code: 'auth.invalid',
  message: 'Send one token: "Authorization" and "x-api-key" contain different ones, or one of them was sent more than once',
};
export const BUSY: AccessDecision = {
  ok: false,
  code: 'auth.busy',
  message: 'Try again in a moment: too many tokens that were not used before are being checked',
};
/** Not `INVALID`, which clients take for final. */
export const NOT_READY: AccessDecision = {
  ok: false,
  code: 'server.starting',
  message: 'Try again in a moment: the service has not read its tokens yet',
};

/** A class that no scope is granted is denied to everyone. */
export function decideScope(access: Access, caller: Caller): AccessDecision {
  const { scope } = caller;
  if (GRANTS[scope].includes(access)) return { ok: true, caller };
  const able = SCOPES.filter((other) => GRANTS[other].includes(access)).map((other) => `"${other}"`);
  return { ok: false, code: 'auth.scope', message: `Use a token with the scope ${able.join(' or ')}: this one has "${scope}"` };
}

/** Finds the credential of a request in its raw headers. Pure. */

type Credential =
  | { readonly kind: 'none' }
  /** As presented; it may have any form. */
  | { readonly kind: 'bearer'; readonly token: string }
  /** Two different credentials, of which none may be preferred. */
  | { readonly kind: 'ambiguous' }
  /** A proxy has authenticated this user. */
  | { readonly kind: 'email'; readonly email: string };

interface ProxyTrust {
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
