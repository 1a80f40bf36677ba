import { beforeEach, describe, expect, test } from '@jest/globals';
import { createResourceEditor } from '../../../src/cluster/slots/resource-editor.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { EditResult, SlotEditor } from '../../../src/schema/slot/slot-editor.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { createInMemoryKube, type MemoryKube } from '../../support/kube/in-memory-kube.ts';

const primary = SlotName.parse('primary');
const embed = SlotName.parse('embed');
const a = { model: { default: 'a.gguf', aliases: ['gpt'] }, env: { TOKEN: '1' } };

describe('createResourceEditor()', () => {
  let kube: MemoryKube;
  let editor: SlotEditor;
  beforeEach(() => {
    kube = createInMemoryKube();
    editor = createResourceEditor(kube);
  });
  const specOf = (name: string) => kube.find('SlotSpec', name)?.['spec'];
  const problemsOf = (result: EditResult) =>
    result.kind === 'invalid' ? result.problems.map((problem) => formatProblem(problem)) : [result.kind];
  const writes = () => kube.requests.filter(({ verb }) => !verb.startsWith('get'));

  test('creates slots, and lists and reads them', async () => {
    const created = await editor.put(primary, a);
    expect(created).toMatchObject({ kind: 'done', created: true, slot: { name: 'primary', document: a } });
    kube.apply('embed', { model: { default: 'e.gguf' } });
    kube.apply('not.a.slot', {});
    expect((await editor.list()).map(({ name }) => name)).toEqual(['primary', 'embed']);
    expect(await editor.read(primary)).toEqual(created.kind === 'done' ? created.slot : undefined);
    expect(await editor.read(SlotName.parse('nobody'))).toBeUndefined();
    kube.apply('embed', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(await editor.read(embed)).toBeUndefined();
    expect((await editor.list()).map(({ name }) => name)).toEqual(['primary']);
  });

  test('replaces the whole document, but keeps labels and annotations of other clients', async () => {
    kube.apply('primary', a, { labels: { team: 'x' }, annotations: { note: 'y' } });
    kube.touch('primary', { status: { state: 'ready' } });
    const put = await editor.put(primary, { model: { default: 'b.gguf' }, priority: 5 });
    expect(put).toMatchObject({ kind: 'done', created: false });
    expect(kube.find('SlotSpec', 'primary')).toMatchObject({
      metadata: { labels: { team: 'x' }, annotations: { note: 'y' }, generation: 2 },
      status: { state: 'ready' },
    });
    expect(specOf('primary')).toEqual({ model: { default: 'b.gguf' }, priority: 5 });
    await editor.put(primary, { priority: 5, model: { default: 'b.gguf' } });
    expect(writes()).toHaveLength(1);
  });

  test('merges a patch; null removes a key', async () => {
    kube.apply('primary', a);
    await editor.patch(primary, { model: { default: 'b.gguf' }, env: null });
    expect(specOf('primary')).toEqual({ model: { default: 'b.gguf', aliases: ['gpt'] } });
    expect(await editor.patch(embed, { enabled: false })).toEqual({ kind: 'not-found' });
  });

  test('rejects unknown keys, which the server would drop silently, with key names of the API', async () => {
    kube.apply('primary', a);
    expect(problemsOf(await editor.patch(primary, { lifecycle: { idleTimout: '5m' } }))).toEqual([
      expect.stringMatching(/^lifecycle\.idle_timout: .*"idle_timeout"/),
    ]);
    expect(problemsOf(await editor.patch(primary, { storage: { host_path: '/srv' } }))).toEqual([
      'storage.hostPath: Unknown key "hostPath"; did you mean "host_path"?',
    ]);
    expect(problemsOf(await editor.put(primary, { model: null }))).toHaveLength(1);
    expect(specOf('primary')).toEqual(a);
    expect(writes()).toEqual([]);
  });

  test('names the field that the server rejects', async () => {
    const message = 'SlotSpec.inference.svc.dev "primary" is invalid: spec.priority: Invalid value: 5: not here';
    kube.behaviour.fault = ({ verb }) => (verb.startsWith('get') ? undefined : { kind: 'stalled', reason: 'Invalid', message });
    expect(problemsOf(await editor.put(primary, a))).toEqual(['priority: Invalid value: 5: not here']);
  });

  test('an edit of an older version is a conflict; a status published meanwhile is not', async () => {
    kube.apply('primary', a);
    const ifMatch = (await editor.read(primary))?.resourceVersion ?? '';
    kube.touch('primary', { status: { state: 'ready' } });
    expect(await editor.patch(primary, { priority: 1 }, { ifMatch })).toMatchObject({ kind: 'done' });
    const present = (await editor.read(primary))?.resourceVersion ?? '';
    expect(present).not.toBe(ifMatch);
    for (const refused of [
      await editor.patch(primary, { priority: 2 }, { ifMatch }),
      await editor.put(primary, a, { ifMatch }),
      await editor.remove(primary, { ifMatch }),
    ]) {
      expect(refused).toEqual({ kind: 'conflict', resourceVersion: present });
    }
    expect(await editor.put(embed, a, { ifMatch: '*' })).toEqual({ kind: 'not-found' });
    expect(await editor.patch(primary, { priority: 3 }, { ifMatch: '*' })).toMatchObject({ kind: 'done' });
  });

  test('reads again after a concurrent write, and then detects a real conflict', async () => {
    kube.apply('primary', a);
    const ifMatch = (await editor.read(primary))?.resourceVersion ?? '';
    let others = 3;
    kube.behaviour.fault = ({ verb }) => {
      if (verb.startsWith('patch') && others-- > 0) kube.touch('primary', { status: { round: others } });
      return undefined;
    };
    expect(await editor.patch(primary, { priority: 1 }, { ifMatch })).toMatchObject({ kind: 'done' });
    kube.behaviour.fault = ({ verb }) => {
      if (verb.startsWith('patch')) kube.apply('primary', { ...a, priority: 7 });
      return undefined;
    };
    const later = (await editor.read(primary))?.resourceVersion ?? '';
    expect(await editor.patch(primary, { priority: 2 }, { ifMatch: later })).toMatchObject({ kind: 'conflict' });
    expect(specOf('primary')).toEqual({ ...a, priority: 7 });
  });

  test('gives up after repeated conflicts', async () => {
    kube.apply('primary', a);
    kube.behaviour.fault = ({ verb }) =>
      verb.startsWith('patch') ? { kind: 'retry', reason: 'Conflict', message: 'another version' } : undefined;
    expect(await editor.patch(primary, { priority: 1 })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('another version'),
    });
    expect(writes().length).toBeLessThan(10);
  });

  test('a dry run is checked by the server and writes nothing', async () => {
    kube.apply('primary', a);
    const document = { ...a, priority: 9 };
    expect(await editor.put(primary, document, { dryRun: true })).toMatchObject({ kind: 'done', created: false, slot: { document } });
    expect(await editor.put(embed, a, { dryRun: true })).toMatchObject({ kind: 'done', created: true });
    expect(await editor.remove(primary, { dryRun: true })).toMatchObject({ kind: 'done' });
    expect(writes().map(({ verb }) => verb)).toEqual(['apply dry SlotSpec', 'apply dry SlotSpec']);
    expect(specOf('primary')).toEqual(a);
    expect(specOf('embed')).toBeUndefined();
  });

  test('removes a slot; an absent one is not found', async () => {
    kube.apply('primary', a);
    expect(await editor.remove(primary)).toMatchObject({ kind: 'done', slot: { document: a } });
    expect(specOf('primary')).toBeUndefined();
    expect(await editor.remove(primary)).toEqual({ kind: 'not-found' });
  });

  test('reports what failed if the server cannot be reached', async () => {
    kube.behaviour.fault = () => ({ kind: 'retry', reason: 'ApiUnreachable', message: 'connection refused' });
    for (const result of [await editor.put(primary, a), await editor.patch(primary, {}), await editor.remove(primary)]) {
      expect(result).toEqual({ kind: 'failed', message: 'Writing SlotSpec "primary" failed: connection refused' });
    }
  });
});
