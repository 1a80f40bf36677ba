/** Every route × every scope × authentication on and off × every kind of credential, over HTTP, against a table that is written from the specification. And what pages of other sites get, in every mode. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { createTokenManager } from '../../src/auth/manage-tokens.ts';
import { allowEveryone, createTokenCheck, createTokenVerifier, type Authorize } from '../../src/auth/check-token.ts';
import { SCOPES, type Scope } from '../../src/schema/words/access.ts';
import { createInMemoryTokenStore } from '../api/manage/in-memory-tokens.ts';
import { startReachedRoutes, type ReachedRoutes } from './reached-routes.ts';
import { PERMISSIONS } from './route-permissions.ts';

const SECRET = 'secret-of-the-proxy';
const UNKNOWN = `svc_00000000.${'A'.repeat(43)}`;
const store = createInMemoryTokenStore();
const verifier = createTokenVerifier({ store });
const tokens = new Map<Scope | 'revoked', string>();
let routes: ReachedRoutes;
/** Of the server, for the test that runs. */
let authorize: Authorize = allowEveryone;

beforeAll(async () => {
  const manager = createTokenManager({ store, lastUses: () => new Map(), wallNow: () => Date.now() });
  for (const scope of [...SCOPES, 'revoked'] as const) {
    const created = await manager.create({ label: scope, scope: scope === 'revoked' ? 'admin' : scope });
    if (!created.ok) throw new Error(created.message);
    const { id, token } = created.value;
    tokens.set(scope, token);
    if (scope !== 'revoked') continue;
    expect(await verifier.verify(token)).toMatchObject({ scope: 'admin' });
    await manager.revoke(id);
  }
  routes = await startReachedRoutes((access, request) => authorize(access, request));
}, 60_000);
afterAll(async () => await routes.close());

/** `proxies`: `SVC_TRUSTED_PROXIES`; requests of this test come from 127.0.0.1. */
function withAuthentication(proxies: readonly string[] = ['10.0.0.0/8'], roles: Readonly<Record<string, Scope>> = { '*': 'admin' }): void {
  const settings = { SVC_AUTH_ENABLED: true, SVC_TRUSTED_PROXIES: proxies, SVC_PROXY_SECRET: SECRET, SVC_IDENTITY_ROLES: roles };
  authorize = createTokenCheck(settings, { store, verifier, onUse: () => undefined });
}

/** What a request gets on a route that is not open: the scope that it has, or why it has none. */
type Outcome = Scope | 'auth.required' | 'auth.invalid';

function expected(route: string, outcome: Outcome): string {
  const permission = PERMISSIONS[route];
  if (permission === undefined) return 'not in the table of this test';
  if (permission === 'everyone') return 'reached';
  if (outcome === 'auth.required' || outcome === 'auth.invalid') return outcome;
  return permission.includes(outcome) ? 'reached' : 'auth.scope';
}

const STATUS: Readonly<Record<string, string>> = { 'auth.required': '401', 'auth.invalid': '401', 'auth.scope': '403' };

/** Asks each route, and each route of `GET` with `HEAD` as well. Returns the answers that are not the expected ones. */
async function differences(headers: readonly string[], expectedOf: (route: string) => string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const route of routes.names) {
    const wanted = expectedOf(route);
    const answer = await routes.send(route, headers);
    if (answer !== wanted) found.push(`${route}: ${answer} instead of ${wanted}`);
    if (!route.startsWith('GET ')) continue;
    const head = await routes.send(route, headers, 'HEAD');
    if (head !== (STATUS[wanted] ?? wanted)) found.push(`HEAD of ${route}: ${head} instead of ${wanted}`);
  }
  return found;
}

const tokenOf = (name: Scope | 'revoked'): string => tokens.get(name) ?? '';
const bearer = (token: string): readonly string[] => ['Authorization', `Bearer ${token}`];
const EMAIL = ['X-Forwarded-Email', 'anna'];
const PROOF = ['X-Svc-Proxy-Secret', SECRET];
const BASIC = ['Authorization', 'Basic YW5uYTpwYXNzd29yZA=='];

/** Tokens are made when the tests run, so headers are functions. */
const OF_TOKENS: readonly (readonly [what: string, headers: () => readonly string[], Outcome])[] = [
  ...SCOPES.flatMap((scope) => [
    [`a token with scope "${scope}"`, () => bearer(tokenOf(scope)), scope] as const,
    [`a token with scope "${scope}" as x-api-key`, () => ['X-Api-Key', tokenOf(scope)], scope] as const,
  ]),
  ['a token after "bearer" in lower case', () => ['authorization', `bearer ${tokenOf('all')}`], 'all'],
  ['the same token twice', () => [...bearer(tokenOf('all')), 'x-api-key', tokenOf('all')], 'all'],
  ['a token as x-api-key beside "Basic"', () => [...BASIC, 'x-api-key', tokenOf('all')], 'all'],
  ['a token beside a trusted e-mail address', () => [...EMAIL, ...PROOF, ...bearer(tokenOf('read-only'))], 'read-only'],
  ['no credential', () => [], 'auth.required'],
  ['"Basic" alone', () => BASIC, 'auth.required'],
  ['"Digest" alone', () => ['Authorization', 'Digest username="anna"'], 'auth.required'],
  ['an unknown token', () => bearer(UNKNOWN), 'auth.invalid'],
  ['a wrong secret', () => bearer(`${tokenOf('admin').slice(0, 13)}${'A'.repeat(43)}`), 'auth.invalid'],
  ['a revoked token', () => bearer(tokenOf('revoked')), 'auth.invalid'],
  ['"Bearer" without a token', () => bearer(''), 'auth.invalid'],
  ['something else than a token', () => bearer('sk-1234'), 'auth.invalid'],
  ['an unknown token as x-api-key', () => ['x-api-key', UNKNOWN], 'auth.invalid'],
  ['two tokens of which one is valid', () => [...bearer(tokenOf('admin')), ...bearer(UNKNOWN)], 'auth.invalid'],
  ['two valid tokens', () => [...bearer(tokenOf('admin')), 'x-api-key', tokenOf('all')], 'auth.invalid'],
  ['an unknown token beside a trusted e-mail address', () => [...EMAIL, ...PROOF, ...bearer(UNKNOWN)], 'auth.invalid'],
];

const OF_PROXIES: readonly (readonly [what: string, headers: readonly string[], Outcome])[] = [
  ['the e-mail address and the secret', [...EMAIL, ...PROOF], 'admin'],
  ['the e-mail address in other capitals', ['x-FORWARDED-email', 'anna', ...PROOF], 'admin'],
  ['the e-mail address beside the "Basic" that was checked', [...EMAIL, ...PROOF, ...BASIC], 'admin'],
  ['the e-mail address without the secret', EMAIL, 'auth.required'],
  ['the e-mail address with another secret', [...EMAIL, 'X-Svc-Proxy-Secret', `${SECRET}x`], 'auth.required'],
  ['the e-mail address with two secrets', [...EMAIL, ...PROOF, ...PROOF], 'auth.required'],
  ['the e-mail address twice', [...EMAIL, ...EMAIL, ...PROOF], 'auth.required'],
  ['the e-mail address twice, in other capitals', [...EMAIL, 'x-forwarded-email', 'mallory', ...PROOF], 'auth.required'],
  ['the e-mail address with underscores', ['X_Forwarded_Email', 'anna', ...PROOF], 'auth.required'],
  ['an empty e-mail address', ['X-Forwarded-Email', ' ', ...PROOF], 'auth.required'],
  ['the secret alone', PROOF, 'auth.required'],
];

describe('the table of routes', () => {
  test('is the one that this test knows', () => {
    expect(routes.names.toSorted()).toEqual(Object.keys(PERMISSIONS).toSorted());
  });
});

describe('with authentication', () => {
  test.each(OF_TOKENS)('%s opens what the specification says', async (_what, headers, outcome) => {
    withAuthentication(['127.0.0.1']);
    expect(await differences(headers(), (route) => expected(route, outcome))).toEqual([]);
  });

  test.each(OF_PROXIES)('from a trusted proxy, %s opens what the specification says', async (_what, headers, outcome) => {
    withAuthentication(['192.0.2.7', '127.0.0.0/8', '2001:db8::/32']);
    expect(await differences(headers, (route) => expected(route, outcome))).toEqual([]);
  });

  test.each(OF_PROXIES)('from anybody else, %s opens the open routes only', async (_what, headers) => {
    withAuthentication();
    expect(await differences(headers, (route) => expected(route, 'auth.required'))).toEqual([]);
  });
});

describe('without authentication', () => {
  test.each([
    ...OF_TOKENS.map(([what, headers]) => [what, headers] as const),
    ...OF_PROXIES.map(([what, headers]) => [what, () => headers] as const),
  ])('every route is open to %s', async (_what, headers) => {
    authorize = allowEveryone;
    expect(await differences(headers(), () => 'reached')).toEqual([]);
  });
});

/** A browser adds the password for the proxy to requests of every page, so the proxy then vouches for requests that a page of another site has caused. */
describe('a page of another site', () => {
  const PAGES = [
    ['a script or a form', ['Origin', 'https://evil.test']],
    ['a page that hides its origin', ['Origin', 'null']],
    ['an image or a frame', ['Sec-Fetch-Site', 'cross-site', 'Sec-Fetch-Mode', 'no-cors', 'Sec-Fetch-Dest', 'image']],
    ['another port of the same machine', ['Sec-Fetch-Site', 'same-site', 'Sec-Fetch-Mode', 'cors', 'Sec-Fetch-Dest', 'empty']],
    ['a page after DNS rebinding', ['Host', 'rebind.test']],
  ] as const;
  const MODES = [
    ['without authentication', () => (authorize = allowEveryone), () => []],
    ['with the e-mail address that the proxy adds', () => withAuthentication(['127.0.0.1']), () => [...EMAIL, ...PROOF, ...BASIC]],
    ['with a valid token', () => withAuthentication(), () => bearer(tokenOf('admin'))],
    ['without a credential where one is needed', () => withAuthentication(), () => []],
  ] as const;

  test.each(
    MODES.flatMap(([mode, enter, credential]) => PAGES.map(([page, headers]) => [page, mode, headers, enter, credential] as const)),
  )('%s gets nothing, %s', async (_page, _mode, headers, enter, credential) => {
    enter();
    const refused: string[] = [];
    for (const route of routes.names)
      if ((await routes.send(route, [...headers, ...credential()])) === 'request.cross_site') refused.push(route);
    expect(routes.names.filter((route) => !refused.includes(route))).toEqual(routes.anySite);
    expect(routes.anySite).toEqual(['GET /api/health/system', 'GET /api/health/ready']);
  });
});
