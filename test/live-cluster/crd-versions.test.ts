/** The way of SlotSpecs from one stored version to the next by the leader, with a copy of the definition, because that of the tests is in use. */
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createKubeApi } from '../../src/cluster/client/api-client.ts';
import { DEFINITIONS } from '../../src/cluster/client/decide/resource-path.ts';
import type { KubeApi, ResourceType } from '../../src/cluster/client/ports.ts';
import { createVersionMigration } from '../../src/cluster/slots/version-migration.ts';
import { eventually } from '../support/eventually.ts';
import { createFastClock } from '../support/kube/fast-clock.ts';
import { definitionOf, type SlotRelease } from '../support/kube/slot-definition.ts';
import { describeWithCluster, kubectl, KUBECONFIG } from '../support/require/require-cluster.ts';

const NAMESPACE = `svc-versions-${process.pid}`;
const NAMES = { kind: 'MovedSlot', listKind: 'MovedSlotList', plural: 'movedslots', singular: 'movedslot' };
const GROUP = 'moved.svc.dev';
const COPY = `${NAMES.plural}.${GROUP}`;
const THIS: SlotRelease = { served: ['v1alpha1', 'v1beta1'], storage: 'v1alpha1' };
const NEXT: SlotRelease = { ...THIS, storage: 'v1beta1', added: { 'spec.color': { type: 'string' } } };
const MODEL = { default: 'a.gguf' };
const inNamespace = async (args: readonly string[], input?: string) => kubectl(['--namespace', NAMESPACE, ...args], input);

async function install(release: SlotRelease): Promise<void> {
  const definition = definitionOf(release);
  const copy = { ...definition, metadata: { name: COPY }, spec: { ...Object(definition['spec']), group: GROUP, names: NAMES } };
  // Its rules do not matter here, and a control plane before 1.25 does not know them.
  const text = JSON.stringify(copy, (key, value: unknown) => (key === 'x-kubernetes-validations' ? undefined : value));
  await kubectl(['apply', '--server-side', '--force-conflicts', '--validate=false', '--filename', '-'], text);
}
const read = async (path: readonly string[]) => JSON.parse(await kubectl([...path, '--output', 'json']));
const stored = async (): Promise<unknown> => (await read(['get', 'crd', COPY])).status?.storedVersions;
const slot = async (version: string, name = 'colored') =>
  await read(['--namespace', NAMESPACE, 'get', `${NAMES.plural}.${version}.${GROUP}`, name]);

/** Leads the requests for SlotSpecs to the copy. */
function toCopy(api: KubeApi): Pick<KubeApi, 'get' | 'list' | 'mergePatch'> {
  const isDefinition = ({ plural }: ResourceType) => plural === DEFINITIONS.plural;
  const moved = (type: ResourceType) => (isDefinition(type) ? type : { ...type, group: GROUP, plural: NAMES.plural, kind: NAMES.kind });
  return {
    get: async (type, _name, signal) => await api.get(type, COPY, signal),
    list: async (type, options, signal) => await api.list(moved(type), options, signal),
    mergePatch: async (type, to, patch, signal) =>
      await api.mergePatch(moved(type), isDefinition(type) ? { name: COPY, subresource: 'status' } : to, patch, signal),
  };
}

describeWithCluster('The versions of SlotSpec', () => {
  beforeAll(async () => void (await kubectl(['create', 'namespace', NAMESPACE])), 60_000);
  afterAll(async () => {
    await kubectl(['delete', 'crd', COPY, '--ignore-not-found', '--timeout=60s']);
    await kubectl(['delete', 'namespace', NAMESPACE, '--timeout=120s']);
  }, 240_000);

  test('go over to "v1beta1" without losing what this release does not know, and then do without "v1alpha1"', async () => {
    const made = await createKubeApi({ env: { KUBECONFIG }, namespace: NAMESPACE, version: 'test' });
    if (!made.ok) throw new Error(made.failure.message);
    await install(THIS);
    for (const name of ['colored', 'untouched']) {
      const object = { apiVersion: `${GROUP}/v1alpha1`, kind: NAMES.kind, metadata: { name }, spec: { model: MODEL } };
      const creates = async () =>
        await inNamespace(['create', '--validate=false', '--filename', '-'], JSON.stringify(object)).catch(() => '');
      await eventually('a slot of this release', async () => (await creates()) !== '', 60_000);
    }
    // The definition of the next release, with a gateway of this one.
    await install(NEXT);
    await eventually('both are stored', async () => JSON.stringify(await stored()) === '["v1alpha1","v1beta1"]', 60_000);
    const edit = async () =>
      await inNamespace(['patch', `${NAMES.plural}.v1beta1.${GROUP}`, 'colored', '--type=merge', '--patch', '{"spec":{"color":"red"}}']);
    await eventually('the new key', async () => (await edit().then(async () => slot('v1beta1'))).spec.color === 'red', 60_000);
    const before = await slot('v1alpha1');
    expect(before.spec).toMatchObject({ model: MODEL, color: 'red' });
    const lines: string[] = [];
    const running = new AbortController();
    const note = (_facts: object, line: string) => void lines.push(line);
    const ended = createVersionMigration({
      api: toCopy(made.value),
      leadership: { leads: () => true, term: () => running.signal },
      clock: createFastClock(20),
      log: { info: note, warn: note },
    }).start(running.signal);
    try {
      await eventually('the message of the leader', () => lines.length > 0, 60_000);
    } finally {
      running.abort();
      await ended;
    }
    expect(await stored()).toEqual(['v1beta1']);
    expect(lines).toEqual([expect.stringMatching(/^Every SlotSpec is stored as "v1beta1"/)]);
    const after = await slot('v1alpha1');
    expect([after.spec, after.metadata.generation, after.metadata.uid]).toEqual([
      before.spec,
      before.metadata.generation,
      before.metadata.uid,
    ]);
    // The release after it no longer has "v1alpha1": an object stored as such could not be read.
    await install({ ...NEXT, served: ['v1beta1'] });
    await eventually(
      'the definition without "v1alpha1"',
      async () => (await read(['get', 'crd', COPY])).spec.versions.length === 1 && (await slot('v1beta1')).spec.color === 'red',
      60_000,
    );
    expect((await slot('v1beta1', 'untouched')).spec).toMatchObject({ model: MODEL });
    expect(await stored()).toEqual(['v1beta1']);
  }, 400_000);
});
