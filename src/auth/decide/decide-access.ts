/** Rules of access: the credential of a request, what its scope permits, and what it may see. Pure. */
import { HIDDEN, hideHostText } from '../../schema/words/failure.ts';
import type { CallerLimits } from '../../schema/words/caller-limits.ts';
import type { Settings } from '../../schema/settings/settings.ts';
import { isTable } from '../../schema/words/key-case.ts';
import { GRANTS, SCOPES, type Access, type Scope } from '../../schema/words/access.ts';

export interface Caller {
  /** What its requests are counted under: `token:<id>`, `user:<e-mail address>`, `wyoming`, `local` or `anyone`. */
  readonly key: string;
  /** The label of a token, or the e-mail address that a proxy forwards. */
  readonly identity: string;
  readonly scope: Scope;
  /** Default: none. */
  readonly limits?: CallerLimits | undefined;
}

type DenialCode = 'auth.required' | 'auth.invalid' | 'auth.expired' | 'auth.scope' | 'auth.busy' | 'server.starting';

export type AccessDecision =
  /** The caller is not known where a route is open. */
  { readonly ok: true; readonly caller?: Caller } | { readonly ok: false; readonly code: DenialCode; readonly message: string };

const denied = (code: DenialCode, message: string): AccessDecision => ({ ok: false, code, message });

/** Root, or the user of the service, who could change the tokens as well. */
export const LOCAL: Caller = { key: 'local', identity: 'local', scope: 'admin' };

export const ALLOWED: AccessDecision = { ok: true };
/** The caller of a service without authentication. */
export const ANYONE: AccessDecision = { ok: true, caller: { key: 'anyone', identity: 'anyone', scope: 'admin' } };

export const anyoneWithin = (limits: CallerLimits): AccessDecision => ({
  ok: true,
  caller: { key: 'anyone', identity: 'anyone', scope: 'admin', limits },
});

export const REQUIRED = denied('auth.required', 'The request has no credential: send a token as "Authorization: Bearer svc_…"');
export const INVALID = denied('auth.invalid', 'The token is unknown, revoked or incomplete: use another one');
export const EXPIRED = denied('auth.expired', 'The token has expired: ask an administrator for another one');
export const AMBIGUOUS = denied('auth.invalid', 'The request has several tokens in "Authorization", "x-api-key" and "api-key": send one');
export const BUSY = denied('auth.busy', 'Too many new tokens are being checked: try again in a moment');
/** Not `INVALID`, which clients take for final. */
export const NOT_READY = denied('server.starting', 'The service has not read its tokens yet: try again in a moment');

/** A class that no scope is granted is denied to everyone. */
export function decideScope(access: Access, caller: Caller): AccessDecision {
  const { scope } = caller;
  if (GRANTS[scope].includes(access)) return { ok: true, caller };
  const able = SCOPES.filter((other) => GRANTS[other].includes(access)).map((other) => `"${other}"`);
  return denied('auth.scope', `The token has the scope "${scope}": use one with ${able.join(' or ')}`);
}

export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'bearer'; readonly token: string }
  /** Two different credentials; neither takes precedence. */
  | { readonly kind: 'ambiguous' }
  | { readonly kind: 'email'; readonly email: string };

interface ProxyTrust {
  /** The peer is a trusted proxy. Asked only about requests that forward an address. */
  isProxy(): boolean;
  /** The value is the proxy's secret; always true where none is set. Undefined: no such header. */
  matchesSecret(value: string | undefined): boolean;
}

/** Who could claim to be an administrator, and what to do; undefined if nobody can. Pure. */
export function describeForgery(settings: ProxySettings): { readonly found: string; readonly fix: string } | undefined {
  const { SVC_AUTH_ENABLED: authEnabled, SVC_PROXY_SECRET: secret, SVC_TRUSTED_PROXIES: proxies } = settings;
  if (!authEnabled || secret !== undefined || proxies.length === 0) return undefined;
  return {
    found: `Every program at ${proxies.join(' or ')} can be an administrator with the header "X-Forwarded-Email", because SVC_PROXY_SECRET is not set`,
    fix: 'Set SVC_PROXY_SECRET to a random value ("openssl rand -hex 32"), and let a proxy send it as "X-Svc-Proxy-Secret"',
  };
}

export type ProxySettings = Pick<Settings, 'SVC_AUTH_ENABLED' | 'SVC_TRUSTED_PROXIES' | 'SVC_PROXY_SECRET'>;

/** A forwarded identity has its own role and limits, else those of its domain, else those of everyone, else none. */
export function decideIdentity(
  access: Access,
  identity: string,
  { roles, limits }: { readonly roles: Settings['SVC_IDENTITY_ROLES']; readonly limits?: ReadonlyMap<string, CallerLimits> | undefined },
): AccessDecision {
  const name = identity.toLowerCase();
  const domains = name.includes('@') ? [`*${name.slice(name.lastIndexOf('@'))}`] : [];
  const names = [name, ...domains, '*'];
  const entry = names.find((key) => Object.hasOwn(roles, key));
  const scope = entry === undefined ? undefined : roles[entry];
  const own = names.flatMap((key) => limits?.get(key) ?? [])[0];
  if (scope !== undefined) return decideScope(access, { key: `user:${name}`, identity, scope, limits: own });
  return denied('auth.scope', `"${identity.slice(0, 200)}" has no role: give it one in "SVC_IDENTITY_ROLES" (chart: "auth.identityRoles")`);
}

/** Lower case. The last one proves the proxy's identity where `SVC_PROXY_SECRET` is set. */
const HEADERS = ['authorization', 'x-api-key', 'api-key', 'x-forwarded-email', 'x-svc-proxy-secret'] as const;
/** Their lengths all differ, so that other headers of a request cost next to nothing. */
const BY_LENGTH: readonly (string | undefined)[] = Array.from({ length: 20 }, (_, length) =>
  HEADERS.find((name) => name.length === length),
);

/** Schemes are compared without regard to case: RFC 9110, 11.1. Some users forget the scheme of a token. */
const BEARER = /^(?:bearer(?: +|$)|(?=svc_))/i;

/**
 * `rawHeaders`: names and values in turn. A bearer token, valid or not, takes precedence over an e-mail address.
 * `x-api-key`, which Anthropic's clients send, and `api-key`, of Azure's, are bearer tokens too. Other schemes of
 * `Authorization` are ignored, because a proxy may pass on `Basic`.
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
    } else if (known === 'x-api-key' || known === 'api-key') addToken(value.trim());
    else if (known === 'x-forwarded-email') [email, emails] = [value.trim(), emails + 1];
    else [secret, secrets] = [value, secrets + 1];
  }
  if (isAmbiguous) return { kind: 'ambiguous' };
  if (token !== undefined) return { kind: 'bearer', token };
  // Repeated headers mean that a client added one to the proxy's.
  if (email === '' || emails > 1 || secrets > 1) return { kind: 'none' };
  return trust.isProxy() && trust.matchesSecret(secret) ? { kind: 'email', email } : { kind: 'none' };
}

/**
 * What a caller sees of an answer. Every answer of `/api`, each event, and each error passes through here.
 *
 *                                       admin   all   other scopes and no credential
 *     log lines, output, host paths     yes     yes   (hidden)
 *     values of `env` and of arguments  yes     (hidden)
 *
 * The scopes are those that may read the log, and those that may edit slots.
 */
export function showTo(caller: Caller | undefined, answer: unknown): unknown {
  if (mayUse('admin', caller)) return answer;
  const textOf = mayReadLogs(caller) ? (text: string) => text : hideHostText;
  const shown = (value: unknown): unknown => {
    if (typeof value === 'string') return textOf(value);
    if (Array.isArray(value)) return value.map(shown);
    if (!isTable(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, shown(key === 'spec' ? hideValues(each) : each)]));
  };
  return shown(answer);
}

export const mayReadLogs = (caller: Caller | undefined): boolean => mayUse('all', caller);

const mayUse = (access: Access, caller: Caller | undefined): boolean => caller !== undefined && GRANTS[caller.scope].includes(access);

/** The name of a flag, and that it has a value behind "=". Longer words behind one dash may be values. */
const FLAG = /^(--[a-z][\w-]*|-[a-z]{1,4})(=.*)?$/is;

/** Hides values of variables and arguments in a slot's document, at any depth: in `env`, `args` and `command`. */
export function hideValues(document: unknown): unknown {
  if (Array.isArray(document)) return document.map(hideValues);
  if (!isTable(document)) return document;
  return Object.fromEntries(Object.entries(document).map(([key, value]) => [key, (HIDERS.get(key) ?? hideValues)(value)]));
}

const HIDERS: ReadonlyMap<string, (value: unknown) => unknown> = new Map([
  ['env', hideVariables],
  ['args', hideArguments],
  ['command', hideArguments],
]);

function hideVariables(env: unknown): unknown {
  if (Array.isArray(env))
    return env.map((variable) => (isTable(variable) && 'value' in variable ? { ...variable, value: HIDDEN } : variable));
  return isTable(env) ? Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN])) : env;
}

function hideArguments(words: unknown): unknown {
  if (!Array.isArray(words)) return typeof words === 'string' ? HIDDEN : words;
  return words.map((word) => {
    const [, flag, value] = FLAG.exec(String(word)) ?? [];
    return flag === undefined ? HIDDEN : `${flag}${value === undefined ? '' : `=${HIDDEN}`}`;
  });
}
