/** Every route with every kind of credential, against what the specification says about paths. */
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { allowEveryone } from '../../src/api/authorize.ts';
import { createAuthorize, type Authorize } from '../../src/auth/create-authorize.ts';
import { createTokenVerifier, type TokenVerifier } from '../../src/auth/token-verifier.ts';
import type { DocumentedRoute } from '../../src/api/route.ts';
import { SCOPES, type Scope } from '../../src/schema/access.ts';
import { createTokenManager } from '../../src/auth/manage-tokens.ts';
import { createInMemoryTokenStore } from '../api/manage/in-memory-tokens.ts';
import { startWorld, type World } from '../api/manage/world.ts';
import { OPEN_ROUTES } from '../support/open-routes.ts';

const OPEN = [...OPEN_ROUTES, 'GET /v1/models'];
const MAY: Readonly<Record<Scope, (route: string) => boolean>> = {
  admin: () => true,
  all: (route) => isInference(route) || (route.startsWith('GET /api/') && !route.includes('/api/auth/')),
  // Images that were drawn for a client are read with any token.
  'v1-only': (route) => isInference(route) || route.startsWith('GET /api/images/'),
  'read-only': (route) => route.startsWith('GET /api/') && !route.includes('/api/auth/') && !route.endsWith('/logs'),
};

function isInference(route: string): boolean {
  return /^(?:GET|POST) \/(?:v1|v2|rerank|reranking)(?:\/|$)/.test(route);
}

let world: World;
let verifier: TokenVerifier;
const tokens = new Map<Scope, string>();
let routes: readonly DocumentedRoute[];

beforeAll(async () => {
  world = await startWorld({ v1: true });
  ({ routes } = world);
  const store = createInMemoryTokenStore();
  const manager = createTokenManager({ store, lastUses: () => new Map(), wallNow: () => Date.now() });
  verifier = createTokenVerifier({ store });
  for (const scope of SCOPES) {
    const created = await manager.create({ label: scope, scope });
    if (created.ok) tokens.set(scope, created.value.token);
  }
});
afterAll(async () => await world.close());

const authorizeWith = (isProxy: boolean): Authorize =>
  createAuthorize({ verifier, isProxy: () => isProxy, matchesSecret: () => true, onUse: () => undefined });

async function decide(route: DocumentedRoute, rawHeaders: string[], authorize = authorizeWith(false)): Promise<string> {
  const decision = await authorize(
    route.access,
    Object.assign(Object.create(null), { rawHeaders, socket: { remoteAddress: '203.0.113.1' } }),
  );
  return decision.ok ? 'allowed' : decision.code;
}
const nameOf = ({ method, path }: DocumentedRoute): string => `${method} ${path}`;
const mapOf = async (decideOne: (route: DocumentedRoute) => Promise<string>) =>
  Object.fromEntries(await Promise.all(routes.map(async (route) => [nameOf(route), await decideOne(route)] as const)));
const expected = (answer: (route: string) => string) =>
  Object.fromEntries(routes.map((route) => [nameOf(route), OPEN.includes(nameOf(route)) ? 'allowed' : answer(nameOf(route))]));

describe('with authentication', () => {
  test('no credential opens only the open routes', async () => {
    expect(routes.length).toBeGreaterThan(30);
    expect(OPEN.filter((name) => !routes.some((route) => nameOf(route) === name))).toEqual([]);
    expect(await mapOf((route) => decide(route, []))).toEqual(expected(() => 'auth.required'));
  });

  test.each(SCOPES)('a token with scope "%s" opens what the specification says', async (scope) => {
    const headers = ['Authorization', `Bearer ${tokens.get(scope)}`];
    expect(await mapOf((route) => decide(route, headers))).toEqual(expected((name) => (MAY[scope](name) ? 'allowed' : 'auth.scope')));
  });

  test('a token that is not valid opens only the open routes, also beside a valid e-mail address', async () => {
    const headers = ['Authorization', `Bearer svc_00000000.${'A'.repeat(43)}`, 'X-Forwarded-Email', 'admin'];
    expect(await mapOf((route) => decide(route, headers, authorizeWith(true)))).toEqual(expected(() => 'auth.invalid'));
  });

  test('the e-mail address of a trusted proxy opens everything, that of anybody else nothing', async () => {
    const headers = ['X-Forwarded-Email', 'admin'];
    expect(await mapOf((route) => decide(route, headers, authorizeWith(true)))).toEqual(expected(() => 'allowed'));
    expect(await mapOf((route) => decide(route, headers))).toEqual(expected(() => 'auth.required'));
  });
});

test('without authentication, every route is open', async () => {
  expect(await mapOf((route) => decide(route, [], allowEveryone))).toEqual(expected(() => 'allowed'));
});
