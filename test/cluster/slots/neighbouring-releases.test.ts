/** The gateway of this release with the definition of the next one, and with that of the one before. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createReflector } from '../../../src/cluster/client/reflector.ts';
import { SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import type { KubeApi } from '../../../src/cluster/client/ports.ts';
import { createResourceEditor } from '../../../src/cluster/slots/resource-editor.ts';
import { createSlotResources, type SlotResources } from '../../../src/cluster/slots/slot-resources.ts';
import { createStatusResources, type StatusResources } from '../../../src/cluster/slots/status-resources.ts';
import { createVersionMigration } from '../../../src/cluster/slots/version-migration.ts';
import type { SlotEditor } from '../../../src/schema/slot/slot-editor.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { createFastClock } from '../../support/kube/fast-clock.ts';
import { install, slotsAsStored, storedVersions } from '../../support/kube/slot-definition.ts';
import { primary, slotStatus } from './decide/status-fixture.ts';

const BEFORE = { served: ['v1alpha1'], storage: 'v1alpha1', removed: ['spec.autoscale', 'status.lastGood', 'status.failures'] };
const THIS = { served: ['v1alpha1', 'v1beta1'], storage: 'v1alpha1' };
/** Keys are added to every version. */
const NEXT = { ...THIS, storage: 'v1beta1', added: { 'spec.color': { type: 'string' }, 'status.hue': { type: 'integer' } } };
/** Has a version that this release does not know, and stores it. */
const THIRD = { ...NEXT, served: ['v1alpha1', 'v1beta1', 'v1'], storage: 'v1' };
const spec = { model: { default: 'a.gguf' }, replicas: 1 };
const COLORED = { ...spec, color: 'red' };

describe('The gateway of this release', () => {
  let fake: FakeKubeApi;
  let api: KubeApi;
  let source: SlotResources;
  let statuses: StatusResources;
  let editor: SlotEditor;
  let lines: string[];
  let running: AbortController;
  let ended: Promise<void> | undefined;
  const log = {
    info: (_facts: object, line: string) => void lines.push(line),
    warn: (_facts: object, line: string) => void lines.push(line),
  };
  const clock = createFastClock(2000);

  beforeEach(async () => {
    fake = await startFakeKubeApi({ definitions: true });
    api = await connectToFake(fake, 'demo');
    [lines, running, ended] = [[], new AbortController(), undefined];
  });
  afterEach(async () => {
    running.abort();
    await ended;
    await fake.close();
  });
  const start = async (): Promise<void> => {
    const slots = createReflector({ api, type: SLOT_SPECS });
    const { generationOf, lastGoodOf, ...read } = createSlotResources({ slots, log });
    const leadership = { leads: () => true, term: () => running.signal, changes: () => undefined };
    source = { ...read, generationOf, lastGoodOf };
    statuses = createStatusResources({ api, slots, leadership, generationOf, lastGoodOf, clock, log });
    editor = createResourceEditor({ api, slots });
    slots.start(running.signal);
    statuses.start(running.signal);
    await eventually('the first list', async () => (await source.read(running.signal)).ok);
  };
  const publish = async (restarts: number): Promise<void> => {
    const status = slotStatus({ restarts, failures: [] });
    statuses.write({ at: Date.now(), statuses: [status], refused: new Map(), entries: [] });
    await eventually('the status', () => stored().status?.['restarts'] === restarts);
  };
  const stored = () => Object(slotsAsStored(fake)['demo/primary']);
  const migrate = async (version: string): Promise<void> => {
    ended = createVersionMigration({ api, leadership: { leads: () => true, term: () => running.signal }, clock, log }).start(
      running.signal,
    );
    await eventually('the migration', () => JSON.stringify(storedVersions(fake)) === `["${version}"]`);
  };
  const desired = async () => {
    const read = await source.read(running.signal);
    return read.ok ? read.value.slots.get(primary) : undefined;
  };

  describe.each([
    ['the next release', NEXT],
    ['a release with a third version', THIRD],
  ])('with the definition of %s', (_name, release) => {
    beforeEach(() => {
      install(fake, THIS);
      fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'primary', labels: { team: 'x' } }, spec });
      install(fake, release);
    });

    test('keeps keys that it does not know when it publishes a status and stores slots anew', async () => {
      await start();
      // Somebody uses the new key, and the gateway of the next release has published a status.
      const key = { metadata: { name: 'primary', labels: { team: 'x' } }, spec: COLORED, status: { state: 'ready', hue: 7 } };
      fake.put(SLOT_SPECS, 'demo', key);
      await publish(3);
      expect(stored()).toMatchObject({
        metadata: { labels: { team: 'x' }, generation: 2 },
        spec: COLORED,
        status: { restarts: 3, hue: 7 },
      });
      await migrate(release.storage);
      expect(stored()).toMatchObject({
        apiVersion: `inference.svc.dev/${release.storage}`,
        metadata: { labels: { team: 'x' }, generation: 2 },
        spec: COLORED,
        status: { restarts: 3, hue: 7 },
      });
    });

    test('goes on with the last text that it understood, names the key, and edits nothing into a text that it does not', async () => {
      await start();
      await desired();
      fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'primary' }, spec: { ...COLORED, replicas: 2 }, status: {} });
      await eventually('the new text', async () => (await desired())?.problems.length === 1);
      const slot = await desired();
      expect(slot?.spec.cluster.replicas).toBe(1);
      expect(slot?.problems.map((problem) => formatProblem(problem, 'camelCase'))).toEqual([
        expect.stringContaining('Unknown key "color"'),
      ]);
      expect(await editor.patch(primary, { replicas: 5 })).toMatchObject({ kind: 'invalid' });
      await publish(4);
      expect(stored().spec).toEqual({ ...COLORED, replicas: 2 });
    });
  });

  test('stores slots anew without losing a key that only the stored version has', async () => {
    install(fake, THIS);
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'primary' }, spec });
    const release = { ...NEXT, onlyIn: 'v1beta1' };
    install(fake, release);
    const beta = { ...SLOT_SPECS, version: 'v1beta1' };
    await api.mergePatch(beta, 'primary', { spec: { color: 'red' } }, running.signal);
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'old' }, spec });
    expect(stored().spec).toEqual(COLORED);
    await migrate('v1beta1');
    expect(stored().spec).toEqual(COLORED);
  });

  test('works with the definition of the release before, and says once what that lacks', async () => {
    install(fake, BEFORE);
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'primary' }, spec });
    await start();
    expect((await desired())?.spec.cluster.replicas).toBe(1);
    await publish(1);
    await publish(2);
    expect(await editor.patch(primary, { replicas: 2 })).toMatchObject({ kind: 'done', slot: { document: { replicas: 2 } } });
    await eventually('the edit', async () => (await desired())?.spec.cluster.replicas === 2);
    await publish(3);
    expect(lines).toEqual([
      expect.stringMatching(
        /^The CustomResourceDefinition on the server is older and has no ("status\.(lastGood|failures)"(, )?){2}: apply the one of this version/,
      ),
    ]);
    ended = createVersionMigration({ api, leadership: { leads: () => true, term: () => running.signal }, clock, log }).start(
      running.signal,
    );
    await eventually('the definition to be read', () => fake.faults.count({ verb: 'get', resource: 'customresourcedefinitions' }) > 1);
    expect([lines.length, storedVersions(fake)]).toEqual([1, ['v1alpha1']]);
  });

  test('refuses an edit with a key that the definition of the release before lacks, and says what to apply', async () => {
    install(fake, BEFORE);
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'primary' }, spec });
    await start();
    const autoscale = { min: 1, max: 4, target: { inFlight: 2 } };
    const patched = await editor.patch(primary, { autoscale });
    const put = await editor.put(primary, { ...spec, autoscale });
    const message = /The CustomResourceDefinition on the server is older and has no "spec\.autoscale": apply the one of this version/;
    expect([patched, put]).toEqual([1, 2].map(() => ({ kind: 'failed', message: expect.stringMatching(message) })));
  });
});
