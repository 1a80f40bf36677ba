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
  /** Whether the peer of the connection is a trusted proxy. */
  readonly isProxy: boolean;
  /** Whether the given value is the secret of the proxy; always true where none is set. Undefined: the request has no such header. */
  matchesSecret(value: string | undefined): boolean;
}

/** With which the proxy proves itself where `SVC_PROXY_SECRET` is set. */
const PROXY_SECRET_HEADER = 'x-svc-proxy-secret';

const EMAIL_HEADER = 'x-forwarded-email';
/** Schemes are compared without regard to case: RFC 9110, 11.1. */
const BEARER = /^bearer(?: +|$)/i;

/**
 * `rawHeaders` are names and values in turn, as Node gives them. A bearer token counts more than an e-mail address, also when it is not valid. `x-api-key`, which Anthropic's
 * clients send, is a bearer token too. Other schemes of `Authorization` count as absent: a proxy may pass on the `Basic` that it has checked.
 */
export function readCredential(rawHeaders: readonly string[], trust: ProxyTrust): Credential {
  const tokens = new Set<string>();
  const emails: string[] = [];
  const secrets: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const value = rawHeaders[index + 1] ?? '';
    switch (rawHeaders[index]?.toLowerCase()) {
      case 'authorization':
        if (BEARER.test(value)) tokens.add(value.replace(BEARER, '').trim());
        break;
      case 'x-api-key':
        tokens.add(value.trim());
        break;
      case EMAIL_HEADER:
        emails.push(value.trim());
        break;
      case PROXY_SECRET_HEADER:
        secrets.push(value);
        break;
      default:
    }
  }
  if (tokens.size > 1) return { kind: 'ambiguous' };
  const [token] = tokens;
  if (token !== undefined) return { kind: 'bearer', token };
  // Repeated headers mean that somebody added one to that of the proxy.
  const [email = '', ...more] = emails;
  const isTrusted = trust.isProxy && email !== '' && more.length === 0 && secrets.length < 2 && trust.matchesSecret(secrets[0]);
  return isTrusted ? { kind: 'email', email } : { kind: 'none' };
}
