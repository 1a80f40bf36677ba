/** Behind an Ingress that forwards who somebody is: the rendered manifests make a gateway that believes this Ingress, and nobody else. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { decideSite } from '../../src/api/server/decide/decide-site.ts';
import { createTokenCheck, type Authorize } from '../../src/auth/check-token.ts';
import { parseRequestHead } from '../../src/gateway/upstream/decide/request-head.ts';
import type { Access } from '../../src/schema/words/access.ts';
import { parseSettings, type Settings } from '../../src/schema/settings/settings.ts';
import { readSitePolicy } from '../../src/wiring/site-policy.ts';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';
import { renderValues } from './value-sets.ts';

type Json = Readonly<Record<string, unknown>>;

const SECRET = 'what-the-secret-contains';
const INGRESS = '10.244.3.7';
const HOST = 'svc.example.com';

describeWithHelm('A gateway behind an Ingress that forwards identity', () => {
  let objects: readonly Json[];
  let settings: Settings;

  beforeAll(async () => {
    const example: Json = parse(await readFile(join(import.meta.dirname, '../../helm/svc/examples/identity.yaml'), 'utf8'));
    objects = await renderValues(example);
    const env = listAt(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0, 'env').flatMap((entry) => {
      const name = String(at(entry, 'name'));
      const secret = at(entry, 'valueFrom', 'secretKeyRef');
      if (secret !== undefined) {
        expect([name, secret]).toEqual(['SVC_PROXY_SECRET', { name: 'svc-proxy', key: 'secret' }]);
        return [[name, SECRET] as const];
      }
      const value = at(entry, 'value');
      return typeof value === 'string' ? [[name, value] as const] : [];
    });
    const parsed = parseSettings(Object.fromEntries(env));
    if (!parsed.ok) throw new Error(parsed.problems.join());
    ({ settings } = parsed);
  });

  async function decide(address: string, rawHeaders: readonly string[], access: Access = 'admin'): Promise<unknown> {
    const authorize: Authorize = createTokenCheck(settings, { store: { current: () => new Map() }, onUse: () => undefined });
    const decision = await authorize(access, Object.assign(Object.create(null), { rawHeaders, socket: { remoteAddress: address } }));
    return decision.ok ? decision.caller : decision.code;
  }

  const EMAIL = ['X-Forwarded-Email', 'anna@example.com'];
  const PROOF = ['X-Svc-Proxy-Secret', SECRET];
  test.each([
    ['the Ingress with both headers', INGRESS, [...EMAIL, ...PROOF], { identity: 'anna@example.com', scope: 'admin' }],
    ['the Ingress in the form of IPv6', `::ffff:${INGRESS}`, [...EMAIL, ...PROOF], { identity: 'anna@example.com', scope: 'admin' }],
    ['a path that the Ingress does not ask a login for', INGRESS, EMAIL, 'auth.required'],
    ['a client that guesses the secret', INGRESS, [...EMAIL, 'X-Svc-Proxy-Secret', 'guessed'], 'auth.required'],
    ['an Ingress that adds its header to that of the client', INGRESS, ['X-Forwarded-Email', 'root', ...EMAIL, ...PROOF], 'auth.required'],
    ['a pod that knows the secret but is no Ingress', '10.96.0.9', [...EMAIL, ...PROOF], 'auth.required'],
    ['the node itself', '127.0.0.1', [...EMAIL, ...PROOF], 'auth.required'],
    ['the Ingress with the token of a program', INGRESS, [...EMAIL, ...PROOF, 'Authorization', 'Bearer svc_1a2b3c4d.x'], 'auth.invalid'],
  ])('%s', async (_who, address, headers, outcome) => {
    const decision = await decide(address, headers);
    if (typeof outcome === 'string') expect(decision).toBe(outcome);
    else expect(decision).toMatchObject(outcome);
  });

  test('gives each person the role that the values say, and nobody else any', async () => {
    const of = async (email: string, access: Access) => await decide(INGRESS, ['X-Forwarded-Email', email, ...PROOF], access);
    expect(await of('ben@example.com', 'v1')).toMatchObject({ identity: 'ben@example.com', scope: 'v1-only' });
    expect(await of('ben@example.com', 'admin')).toBe('auth.scope');
    expect(await of('eve@other.test', 'v1')).toBe('auth.scope');
  });

  test('knows its own name there, and refuses pages of other sites although the Ingress vouches for whoever opened them', () => {
    const ask = (...headers: readonly string[]) => {
      const head = parseRequestHead(['Host', HOST, ...EMAIL, ...PROOF, ...headers]);
      return decideSite({ ...head, method: 'POST', isHttp10: false, target: undefined }, readSitePolicy(settings, true), false).kind;
    };
    expect(ask()).toBe('own');
    expect(ask('Origin', `https://${HOST}`, 'Sec-Fetch-Site', 'same-origin')).toBe('own');
    expect(ask('Origin', 'https://evil.example')).toBe('refuse');
    expect(ask('Sec-Fetch-Site', 'cross-site')).toBe('refuse');
  });

  test('has an Ingress that replaces both headers with those of the login', () => {
    const [ingress, ...more] = ofKind(objects, 'Ingress');
    expect(more).toEqual([]);
    const replaced = String(at(ingress, 'metadata', 'annotations', 'nginx.ingress.kubernetes.io/auth-response-headers')).split(',');
    expect(replaced.toSorted()).toEqual(['X-Forwarded-Email', 'X-Svc-Proxy-Secret']);
    expect(at(ingress, 'spec', 'rules', 0, 'host')).toBe(HOST);
    const backend = { service: { name: 'svc-management', port: { name: 'management' } } };
    expect(at(ingress, 'spec', 'rules', 0, 'http', 'paths')).toEqual([{ path: '/', pathType: 'Prefix', backend }]);
    expect(JSON.stringify(objects)).not.toContain(SECRET);
  });
});
