/** The migration of stored versions against a fake API server that stores each object in the version of its last write. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createVersionMigration } from '../../../src/cluster/slots/version-migration.ts';
import { DEFINITIONS, SLOT_SPECS } from '../../../src/cluster/client/decide/resource-path.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeKubeApi, type FakeKubeApi } from '../../support/kube/fake-kube-api.ts';
import { connectToFake } from '../../support/kube/fake-kube-client.ts';
import { createFastClock } from '../../support/kube/fast-clock.ts';
import { install, slotsAsStored, storedVersions } from '../../support/kube/slot-definition.ts';

const OLD = { served: ['v1alpha1', 'v1beta1'], storage: 'v1alpha1' };
const NEW = { ...OLD, storage: 'v1beta1' };
const NEWEST = { served: ['v1alpha1', 'v1beta1', 'v1'], storage: 'v1' };
const REWRITES = { verb: 'patch', resource: 'slotspecs', subresource: 'status' } as const;
const spec = { model: { default: 'a.gguf' } };
const forbidden = (verb: string, resource: string, where: string) => ({
  status: 403,
  reason: 'Forbidden',
  message: `${resource} "x" is forbidden: User "system:serviceaccount:demo:svc" cannot ${verb} resource "${resource}" ${where}`,
});

describe('createVersionMigration()', () => {
  let fake: FakeKubeApi;
  let lines: string[];
  let warnings: number;
  let leads: boolean;
  let looks: number;
  let running: AbortController;
  let ended: Promise<void> | undefined;

  beforeEach(async () => {
    fake = await startFakeKubeApi({ definitions: true });
    [lines, warnings, leads, looks, running, ended] = [[], 0, true, 0, new AbortController(), undefined];
    install(fake, OLD);
    for (const [namespace, name] of [
      ['demo', 'a'],
      ['demo', 'b'],
      ['other', 'c'],
    ] as const)
      fake.put(SLOT_SPECS, namespace, { metadata: { name, labels: { team: 'x' } }, spec, status: { state: 'ready' } });
  });
  afterEach(async () => {
    running.abort();
    await ended;
    await fake.close();
  });
  /** Ten minutes last 0.3 s. */
  const start = async (): Promise<void> => {
    const note = (_facts: object, line: string) => void lines.push(line);
    const warn = (facts: object, line: string) => ((warnings += 1), note(facts, line));
    const migration = createVersionMigration({
      api: await connectToFake(fake, 'demo'),
      leadership: { leads: () => ((looks += 1), leads), term: () => running.signal },
      clock: createFastClock(2000),
      log: { info: note, warn },
    });
    ended = migration.start(running.signal);
  };
  const versions = () =>
    Object.fromEntries(Object.entries(slotsAsStored(fake)).map(([key, { apiVersion }]) => [key, apiVersion.split('/')[1]]));
  const all = (version: string) => ({ 'demo/a': version, 'demo/b': version, 'other/c': version });
  const recorded = async (version: string): Promise<void> => {
    await eventually('the message about the end', () => lines.at(-1)?.startsWith(`Every SlotSpec is stored as "${version}"`) === true);
    expect(storedVersions(fake)).toEqual([version]);
  };
  /** The leader has looked this many times more. */
  const looked = async (times: number): Promise<void> => {
    const until = looks + times;
    await eventually('further looks', () => looks >= until);
  };
  const namesOf = () =>
    fake.faults.requests.filter(({ verb, resource }) => verb === 'patch' && resource === 'slotspecs').map(({ name }) => name);

  test('stores every slot of every namespace anew, and then records the version as the only one', async () => {
    const before = slotsAsStored(fake);
    install(fake, NEW);
    expect([storedVersions(fake), versions()]).toEqual([['v1alpha1', 'v1beta1'], all('v1alpha1')]);
    await start();
    await recorded('v1beta1');
    expect(versions()).toEqual(all('v1beta1'));
    // The same objects in every other respect, so that nothing restarts.
    for (const [key, { apiVersion: _version, metadata, ...content }] of Object.entries(slotsAsStored(fake))) {
      const { apiVersion: _before, metadata: metadataBefore, ...same } = before[key] ?? { apiVersion: '', metadata: {} };
      const { resourceVersion: _is, managedFields: _owners, ...rest } = metadata;
      expect([key, content]).toEqual([key, same]);
      expect(metadataBefore).toMatchObject(rest);
    }
    await looked(3);
    expect(namesOf()).toEqual(['a', 'b', 'c']);
    expect(lines).toEqual(['Every SlotSpec is stored as "v1beta1", the only stored version that the definition lists now']);
    // A later definition may now drop the old version.
    install(fake, { served: ['v1beta1'], storage: 'v1beta1' });
  });

  test('writes nothing where nothing is stored in an older version, after a downgrade, or without leading', async () => {
    await start();
    await looked(2);
    install(fake, NEW);
    install(fake, OLD);
    await looked(2);
    leads = false;
    install(fake, NEW);
    await looked(3);
    expect([fake.faults.count({ verb: 'patch' }), storedVersions(fake), lines]).toEqual([0, ['v1alpha1', 'v1beta1'], []]);
    leads = true;
    await recorded('v1beta1');
  });

  test('asks for a definition that is not there no more often than for one that is, and says nothing', async () => {
    const message = 'customresourcedefinitions.apiextensions.k8s.io "x" not found';
    fake.faults.answer({ verb: 'get', resource: DEFINITIONS.plural }, { status: 404, reason: 'NotFound', message });
    await start();
    // More often than failures are tolerated without a warning.
    await looked(7);
    expect(lines).toEqual([]);
  });

  test('reads more slots than one page has', async () => {
    for (let index = 0; index < 600; index++) fake.put(SLOT_SPECS, 'demo', { metadata: { name: `s${index}` }, spec });
    install(fake, NEW);
    await start();
    await recorded('v1beta1');
    expect(new Set(Object.values(versions()))).toEqual(new Set(['v1beta1']));
    expect(fake.faults.requests.filter(({ url }) => url.includes('continue=')).length).toBe(1);
  });

  test('takes a conflict for a write by somebody else, and goes on after failures with what is left', async () => {
    install(fake, NEW);
    const undelay = fake.faults.delay({ ...REWRITES, name: 'a' }, 50);
    fake.faults.answer({ ...REWRITES, name: 'b' }, { status: 503 }, 2);
    await start();
    await eventually('the first write', () => fake.faults.count({ ...REWRITES, name: 'a' }) === 1);
    fake.put(SLOT_SPECS, 'demo', { metadata: { name: 'a' }, spec: { ...spec, replicas: 2 }, status: {} });
    await recorded('v1beta1');
    undelay();
    expect(versions()).toEqual(all('v1beta1'));
    expect(fake.faults.requests.filter(({ verb, name }) => verb === 'patch' && name === 'a')).toMatchObject([{ status: 409 }]);
    expect(namesOf()).toEqual(['a', 'b', 'b', 'b', 'c']);
    expect(slotsAsStored(fake)['demo/a']).toMatchObject({ spec: { replicas: 2 } });
  });

  test('records nothing about a slot that an API server could not write in the new version', async () => {
    install(fake, NEW);
    const message = 'the server could not find the requested resource';
    fake.faults.answer({ ...REWRITES, name: 'b' }, { status: 404, reason: 'NotFound', message }, 1);
    await start();
    await recorded('v1beta1');
    expect([versions(), namesOf()]).toEqual([all('v1beta1'), ['a', 'b', 'b', 'c']]);
  });

  test('begins again when the definition is edited meanwhile, and records only what was decided about the definition it read', async () => {
    install(fake, NEW);
    const undelay = fake.faults.delay({ ...REWRITES, name: 'c' }, 100);
    await start();
    await eventually('the last write', () => fake.faults.count({ ...REWRITES, name: 'c' }) === 1);
    install(fake, NEWEST);
    undelay();
    await recorded('v1');
    expect(versions()).toEqual(all('v1'));
    const records = fake.faults.requests.filter(({ verb, resource }) => verb === 'patch' && resource === DEFINITIONS.plural);
    expect(records.map(({ status }) => status)).toEqual([409, 200]);
    expect(lines).toHaveLength(1);
  });

  test.each([
    ['get', 'read the definition', { verb: 'get', resource: DEFINITIONS.plural }, 0, all('v1alpha1')],
    ['list', 'list the slots of all namespaces', { verb: 'list', resource: 'slotspecs' }, 0, all('v1alpha1')],
    ['patch', 'write slots of another namespace', { ...REWRITES, name: 'c' }, 2, { ...all('v1beta1'), 'other/c': 'v1alpha1' }],
    ['patch', 'write the status of the definition', { verb: 'patch', resource: DEFINITIONS.plural }, 3, all('v1beta1')],
  ] as const)('says once that it may not "%s": %s, and goes on once it may', async (verb, _what, filter, written, left) => {
    install(fake, NEW);
    const allow = fake.faults.answer(filter, forbidden(verb, filter.resource, 'in the namespace "other"'));
    await start();
    await eventually('a message', () => lines.length > 0);
    await looked(2);
    expect(lines).toEqual([
      expect.stringMatching(
        new RegExp(
          `^SlotSpecs are not stored in a newer version: "system:serviceaccount:demo:svc" may not "${verb}" .*: add the verb to its role, or follow "Versions of SlotSpec" in docs/`,
        ),
      ),
    ]);
    // By default, the chart does not grant the first right.
    expect(warnings).toBe(verb === 'get' ? 0 : 1);
    expect([versions(), storedVersions(fake)]).toEqual([left, ['v1alpha1', 'v1beta1']]);
    expect(new Set(namesOf().filter((name) => name !== 'c' || verb !== 'patch')).size).toBe(Math.min(written, 2));
    allow();
    await recorded('v1beta1');
    expect(lines).toHaveLength(2);
  });
});
