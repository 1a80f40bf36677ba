/** What we rely on in every API server: the fake one and a real one pass the same tests, so that the fake is not more forgiving. */
import { expect, test } from '@jest/globals';
import type { KubeApi, KubeManifest, KubeObject } from '../../../src/cluster/client/ports.ts';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import { CONFIG_MAPS, DEPLOYMENTS, DEVICE_CLASSES } from '../../../src/cluster/client/decide/resource-path.ts';
import type { Result } from '../../../src/schema/words/failure.ts';
import { eventually } from '../eventually.ts';

const SIGNAL = new AbortController().signal;

export function valueOf<T>(result: Result<T>): T {
  if (!result.ok) throw new Error(`${result.failure.reason}: ${result.failure.message}`);
  return result.value;
}

export const reasonOf = (result: Result<unknown>): string => (result.ok ? 'ok' : result.failure.reason);

const configMap = (name: string, data: Readonly<Record<string, string>>, labels: Readonly<Record<string, string>> = {}): KubeManifest => ({
  metadata: { name, labels },
  data,
});

const containers = (replicas: number, env: readonly Readonly<Record<string, string>>[]): KubeManifest => ({
  metadata: { name: 'web' },
  spec: {
    replicas,
    // Otherwise, annotations of the controller would create new generations during the test.
    paused: true,
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'localhost/none:v1', env }] } },
  },
});

/** By path, as `spec.replicas` or `spec.template.spec.containers.0.env`. */
function at(object: KubeObject, path: string): unknown {
  const childOf = (value: unknown, key: string): unknown =>
    typeof value === 'object' && value !== null ? Object.entries(value).find(([name]) => name === key)?.[1] : undefined;
  return path.split('.').reduce<unknown>(childOf, object);
}

export function describeKubeApi(connect: () => KubeApi): void {
  const mine = { fieldManager: 'svc-controller' };
  const theirs = { fieldManager: 'another-manager' };

  test('creates, gets, lists by label and removes an object; removing it again succeeds', async () => {
    const api = connect();
    const created = valueOf(await api.create(CONFIG_MAPS, configMap('crud-a', { a: '1' }, { suite: 'crud' }), SIGNAL));
    valueOf(await api.create(CONFIG_MAPS, configMap('crud-b', { b: '1' }, { suite: 'other' }), SIGNAL));
    expect(reasonOf(await api.create(CONFIG_MAPS, configMap('crud-a', {}), SIGNAL))).toBe('AlreadyExists');
    expect(valueOf(await api.get(CONFIG_MAPS, 'crud-a', SIGNAL))).toEqual(created);
    const { items, resourceVersion } = valueOf(await api.list(CONFIG_MAPS, { labelSelector: 'suite=crud' }, SIGNAL));
    expect(items.map(({ apiVersion, kind, metadata }) => [apiVersion, kind, metadata.name])).toEqual([['v1', 'ConfigMap', 'crud-a']]);
    expect(resourceVersion).toMatch(/^\d+$/);
    expect(reasonOf(await api.remove(CONFIG_MAPS, 'crud-a', {}, SIGNAL))).toBe('ok');
    expect(reasonOf(await api.remove(CONFIG_MAPS, 'crud-a', {}, SIGNAL))).toBe('ok');
    expect(reasonOf(await api.get(CONFIG_MAPS, 'crud-a', SIGNAL))).toBe('NotFound');
  });

  test('rejects a write against an older version as a conflict, and changes nothing', async () => {
    const api = connect();
    const old = valueOf(await api.create(CONFIG_MAPS, configMap('versions', { a: '1' }), SIGNAL)).metadata.resourceVersion ?? '';
    valueOf(await api.mergePatch(CONFIG_MAPS, 'versions', { data: { a: '2' } }, SIGNAL));
    const stale = { ...configMap('versions', { a: '3' }), metadata: { name: 'versions', resourceVersion: old } };
    expect(reasonOf(await api.replace(CONFIG_MAPS, stale, SIGNAL))).toBe('Conflict');
    const patch = { metadata: { resourceVersion: old }, data: { a: '4' } };
    expect(reasonOf(await api.mergePatch(CONFIG_MAPS, 'versions', patch, SIGNAL))).toBe('Conflict');
    expect(valueOf(await api.get(CONFIG_MAPS, 'versions', SIGNAL))['data']).toEqual({ a: '2' });
  });

  test('removes a key by a merge patch with null', async () => {
    const api = connect();
    valueOf(await api.create(CONFIG_MAPS, configMap('nulls', { a: '1', b: '2' }, { x: 'y' }), SIGNAL));
    const patched = valueOf(await api.mergePatch(CONFIG_MAPS, 'nulls', { metadata: { labels: { x: null } }, data: { a: null } }, SIGNAL));
    expect([patched['data'], patched.metadata.labels ?? {}]).toEqual([{ b: '2' }, {}]);
  });

  test('does not even change the version if the same is applied again', async () => {
    const api = connect();
    const first = valueOf(await api.apply(CONFIG_MAPS, configMap('same', { a: '1' }, { l: '1' }), mine, SIGNAL));
    const second = valueOf(await api.apply(CONFIG_MAPS, configMap('same', { a: '1' }, { l: '1' }), mine, SIGNAL));
    expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  });

  test('apply keeps fields of other managers, overwrites changes to ours, and removes those that we no longer apply', async () => {
    const api = connect();
    valueOf(await api.apply(CONFIG_MAPS, configMap('owners', { ours: '1', gone: '1' }, { l: '1' }), mine, SIGNAL));
    valueOf(await api.apply(CONFIG_MAPS, configMap('owners', { theirs: '1' }, { foreign: '1' }), theirs, SIGNAL));
    valueOf(await api.mergePatch(CONFIG_MAPS, 'owners', { data: { ours: 'edited' } }, SIGNAL));
    const applied = valueOf(await api.apply(CONFIG_MAPS, configMap('owners', { ours: '1' }, { l: '1' }), mine, SIGNAL));
    expect([applied['data'], applied.metadata.labels]).toEqual([
      { ours: '1', theirs: '1' },
      { l: '1', foreign: '1' },
    ]);
  });

  test('apply keeps environment variables and sidecars of others in a Deployment, and only a changed spec increases the generation', async () => {
    const api = connect();
    const first = valueOf(await api.apply(DEPLOYMENTS, containers(0, [{ name: 'A', value: '1' }]), mine, SIGNAL));
    const side = { name: 'side', image: 'localhost/none:v1' };
    const foreign = {
      ...containers(0, []),
      spec: { template: { spec: { containers: [{ name: 'main', env: [{ name: 'Z', value: '9' }] }, side] } } },
    };
    const second = valueOf(await api.apply(DEPLOYMENTS, foreign, theirs, SIGNAL));
    const third = valueOf(await api.apply(DEPLOYMENTS, containers(0, [{ name: 'B', value: '2' }]), mine, SIGNAL));
    expect(at(third, 'spec.template.spec.containers.0.env')).toEqual(
      expect.arrayContaining([
        { name: 'B', value: '2' },
        { name: 'Z', value: '9' },
      ]),
    );
    expect(at(third, 'spec.template.spec.containers.0.env')).toHaveLength(2);
    expect(at(third, 'spec.template.spec.containers.1.name')).toBe('side');
    expect([first, second, third].map(({ metadata }) => metadata.generation)).toEqual([1, 2, 3]);
    const labelled = valueOf(await api.mergePatch(DEPLOYMENTS, 'web', { metadata: { labels: { note: 'x' } } }, SIGNAL));
    const annotated = valueOf(await api.mergePatch(DEPLOYMENTS, 'web', { metadata: { annotations: { note: 'x' } } }, SIGNAL));
    expect([labelled.metadata.generation, annotated.metadata.generation]).toEqual([3, 4]);
    valueOf(await api.remove(DEPLOYMENTS, 'web', {}, SIGNAL));
  });

  test('removing by UID keeps a later object with the same name, and succeeds', async () => {
    const api = connect();
    const first = valueOf(await api.create(CONFIG_MAPS, configMap('again', {}), SIGNAL));
    valueOf(await api.remove(CONFIG_MAPS, 'again', { uid: first.metadata.uid ?? '' }, SIGNAL));
    valueOf(await api.create(CONFIG_MAPS, configMap('again', {}), SIGNAL));
    expect(reasonOf(await api.remove(CONFIG_MAPS, 'again', { uid: first.metadata.uid ?? '' }, SIGNAL))).toBe('ok');
    expect(reasonOf(await api.get(CONFIG_MAPS, 'again', SIGNAL))).toBe('ok');
  });

  test('removes the objects that a removed object owns', async () => {
    const api = connect();
    const { uid } = valueOf(await api.create(CONFIG_MAPS, configMap('owner', {}), SIGNAL)).metadata;
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: uid ?? '', controller: true }];
    const owned = { ...configMap('owned', {}), metadata: { name: 'owned', ownerReferences } };
    valueOf(await api.apply(CONFIG_MAPS, owned, mine, SIGNAL));
    valueOf(await api.remove(CONFIG_MAPS, 'owner', {}, SIGNAL));
    await eventually(
      'the owned object is removed',
      async () => reasonOf(await api.get(CONFIG_MAPS, 'owned', SIGNAL)) === 'NotFound',
      60_000,
    );
  }, 70_000);

  test('a reflector follows what others create, change and remove', async () => {
    const api = connect();
    const own = new AbortController();
    const copy = createReflector({ api, type: CONFIG_MAPS, labelSelector: 'suite=reflected' });
    copy.start(own.signal);
    await eventually('the first list', () => copy.health().kind === 'current');
    expect(copy.items().size).toBe(0);
    valueOf(await api.create(CONFIG_MAPS, configMap('seen', { a: '1' }, { suite: 'reflected' }), SIGNAL));
    await eventually('it is in the copy', () => copy.items().has('seen'));
    valueOf(await api.mergePatch(CONFIG_MAPS, 'seen', { data: { a: '2' } }, SIGNAL));
    await eventually(
      'its change is in the copy',
      () => copy.items().get('seen')?.['data'] !== undefined && JSON.stringify(copy.items().get('seen')?.['data']) === '{"a":"2"}',
    );
    expect(copy.items().get('seen')?.metadata).not.toHaveProperty('managedFields');
    valueOf(await api.mergePatch(CONFIG_MAPS, 'seen', { metadata: { labels: { suite: 'elsewhere' } } }, SIGNAL));
    await eventually('it is no longer in the copy without its label', () => copy.items().size === 0);
    expect(copy.health()).toEqual({ kind: 'current' });
    own.abort();
  });

  test('reports which resource types the server serves', async () => {
    const api = connect();
    const unknown = { ...DEVICE_CLASSES, group: 'nowhere.example' };
    expect([await api.serves(DEPLOYMENTS, SIGNAL), await api.serves(CONFIG_MAPS, SIGNAL), await api.serves(unknown, SIGNAL)]).toEqual(
      [true, true, false].map((value) => ({ ok: true, value })),
    );
  });

  test('rejects an invalid name before a request is sent', async () => {
    const api = connect();
    for (const name of ['../secrets/x', 'a/b', 'a%2fb', 'A', '', '.', 'a b', `${'a'.repeat(254)}`]) {
      expect(reasonOf(await api.get(CONFIG_MAPS, name, SIGNAL))).toBe('Invalid');
      expect(reasonOf(await api.remove(CONFIG_MAPS, name, {}, SIGNAL))).toBe('Invalid');
    }
  });
}
