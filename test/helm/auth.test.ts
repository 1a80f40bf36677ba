/** Tests what the chart does for authentication: the Secret with the tokens, the right to it, and the environment of the gateway. */
import { expect, test } from '@jest/globals';
import { describeWithHelm } from '../support/require/require-helm.ts';
import { at, gatewayOf, listAt, ofKind } from './rendered.ts';
import { renderValues, VALUE_SETS } from './value-sets.ts';

type Json = Readonly<Record<string, unknown>>;

const nameOf = (object: unknown): string => String(at(object, 'metadata', 'name'));
const envOf = (objects: readonly Json[]): ReadonlyMap<unknown, unknown> =>
  new Map(
    listAt(gatewayOf(objects), 'spec', 'template', 'spec', 'containers', 0, 'env').map((entry) => [
      at(entry, 'name'),
      at(entry, 'value') ?? at(entry, 'valueFrom'),
    ]),
  );
const secretRulesOf = (objects: readonly Json[]) =>
  ofKind(objects, 'Role')
    .flatMap((role) => listAt(role, 'rules'))
    .filter((rule) => listAt(rule, 'resources').includes('secrets'));

describeWithHelm('The chart', () => {
  test('creates the Secret of the tokens without any data, so that upgrades leave it alone, and keeps it', async () => {
    const [secret, ...more] = ofKind(await renderValues({}), 'Secret');
    expect(more).toEqual([]);
    expect([secret?.['data'], secret?.['stringData'], secret?.['immutable']]).toEqual([undefined, undefined, undefined]);
    expect(at(secret, 'metadata', 'annotations')).toMatchObject({ 'helm.sh/resource-policy': 'keep' });
  });

  test.each(Object.entries(VALUE_SETS))(
    'with the values "%s" lets the gateway use the Secret that it names, and no other one',
    async (_name, values) => {
      const objects = await renderValues(values);
      const name = String(envOf(objects).get('SVC_TOKENS_SECRET'));
      expect(name).toMatch(/^.{1,63}$/);
      for (const secret of ofKind(objects, 'Secret')) expect(nameOf(secret)).toBe(name);
      if (ofKind(objects, 'Role').length === 0) return;
      const rule = { apiGroups: [''], resources: ['secrets'], resourceNames: [name], verbs: ['get', 'list', 'watch', 'patch'] };
      expect(secretRulesOf(objects)).toEqual(envOf(objects).has('SVC_AUTH_ENABLED') ? [rule] : []);
    },
  );

  test('uses an existing Secret', async () => {
    const objects = await renderValues({ auth: { enabled: true, tokensSecret: { create: false, name: 'given' } } });
    expect(ofKind(objects, 'Secret')).toEqual([]);
    expect(envOf(objects).get('SVC_TOKENS_SECRET')).toBe('given');
    expect(at(secretRulesOf(objects)[0], 'resourceNames')).toEqual(['given']);
  });

  test('authenticates and trusts proxies as it is told, with the secret of the proxy from a Secret', async () => {
    const off = envOf(await renderValues({}));
    for (const key of ['SVC_AUTH_ENABLED', 'SVC_TRUSTED_PROXIES', 'SVC_PROXY_SECRET']) expect(off.has(key)).toBe(false);
    expect(off.get('SVC_IDENTITY_ROLES')).toBe('');
    const identityRoles = { 'anna@example.com': 'admin', '*@example.com': 'v1-only' };
    const auth = { enabled: true, trustedProxies: ['10.244.0.0/16', '10.0.0.7'], identityRoles, proxySecret: { name: 'proxy' } };
    const on = envOf(await renderValues({ auth }));
    expect(on.get('SVC_AUTH_ENABLED')).toBe('1');
    expect(on.get('SVC_IDENTITY_ROLES')).toBe('*@example.com=v1-only,anna@example.com=admin');
    expect(on.get('SVC_TRUSTED_PROXIES')).toBe('10.244.0.0/16,10.0.0.7');
    expect(on.get('SVC_PROXY_SECRET')).toEqual({ secretKeyRef: { name: 'proxy', key: 'secret' } });
  });

  test('refuses to trust other pods without a secret, and a chat UI without a token', async () => {
    const auth = { enabled: true };
    await expect(renderValues({ auth: { ...auth, trustedProxies: ['10.244.0.0/16'] } })).rejects.toThrow('Set "auth.proxySecret.name" too');
    await expect(renderValues({ auth, chatUi: { enabled: true } })).rejects.toThrow('Set "chatUi.tokenSecret.name"');
    const objects = await renderValues({ auth, chatUi: { enabled: true, tokenSecret: { name: 'chat' } } });
    const chat = ofKind(objects, 'Deployment').find((object) => nameOf(object).endsWith('chat-ui'));
    const env = listAt(chat, 'spec', 'template', 'spec', 'containers', 0, 'env');
    expect(env.find((entry) => at(entry, 'name') === 'OPENAI_API_KEY')).toEqual({
      name: 'OPENAI_API_KEY',
      valueFrom: { secretKeyRef: { name: 'chat', key: 'token' } },
    });
  });
});
