/** Downloads into real file systems that are full, read-only, gone, or shared with another service. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { encodeDemoModel } from '../../../toolboxes/demo/demo-models.ts';
import { findForeignModels, importModel } from '../../../src/models/import/import-model.ts';
import { readHubAccess } from '../../../src/models/hub/hub-access.ts';
import { createModelSources } from '../../../src/models/model-sources.ts';
import { createDiskRoom, type DiskRoom } from '../../../src/models/download/disk-room.ts';
import { UNLIMITED } from '../../../src/platform/throttle.ts';
import { createModelStore, type DirectoryModelStore } from '../../../src/models/store.ts';
import { MODEL_FORMATS } from '../../../src/providers/registry.ts';
import { ok } from '../../../src/schema/words/failure.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { eventually } from '../../support/eventually.ts';
import { startFakeHub, type FakeHub } from '../../support/hub/fake-hub.ts';
import { bufferFile } from '../../support/hub/virtual-file.ts';
import { describeWithMounts, mountSmallDisk, type SmallDisk } from '../../support/require/require-mounts.ts';

const MIB = 2 ** 20;
const SIZE = 48 * MIB;
/** A model that can be read, of any size. */
const content = Buffer.concat([encodeDemoModel('demo-owl')], SIZE);
const signal = new AbortController().signal;
const MODEL = ModelId.parse('hf:o/r:Q8_0');
const OLD = ModelId.parse('old.gguf');
/** Grants any room: another program may take it during a download. */
const ANY_ROOM: DiskRoom = { reserve: async () => ok({ [Symbol.dispose]: () => undefined }) };

let hub: FakeHub;
let disk: SmallDisk;
beforeEach(async () => {
  hub = await startFakeHub({
    repos: [{ name: 'o/r', commit: 'a'.repeat(40), files: new Map([['m-Q8_0.gguf', bufferFile(content)]]), license: 'mit' }],
  });
});
afterEach(() => hub.close());

function storeAt(root: string, room: DiskRoom = ANY_ROOM, writer = 'one'): DirectoryModelStore {
  const sources = createModelSources({ root, hub: readHubAccess({ HF_ENDPOINT: hub.url, HF_HOME: root }) });
  const limits = { connections: 4, throttle: UNLIMITED, room };
  return createModelStore({ root, formats: MODEL_FORMATS, sources, writer, limits, pace: { pollMs: 20, stillMs: 2000, retryMs: 5 } });
}

const pull = async (store: DirectoryModelStore) => store.pull(MODEL, () => {}, signal);
const kindOf = async (store: DirectoryModelStore, id = MODEL) => (await store.observe([id], signal)).get(id)?.kind;
const fileIn = (root: string): string => path.join(root, 'hf/o/r/m-Q8_0/m-Q8_0.gguf');

async function expectComplete(root: string): Promise<void> {
  expect(Buffer.compare(await readFile(fileIn(root)), content)).toBe(0);
  expect(await readdir(path.dirname(fileIn(root)))).toEqual(['m-Q8_0.gguf']);
}

describeWithMounts('a store on a small disk', () => {
  beforeEach(async () => {
    disk = mountSmallDisk(24);
    await writeFile(path.join(disk.path, OLD), encodeDemoModel('demo-fox'));
  });
  afterEach(() => disk.dispose());

  test('that fills up during a download fails with what to do, keeps what it has and the other models, and resumes when there is room', async () => {
    const store = storeAt(disk.path);
    const failed = await pull(store);
    expect(failed).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'DiskFull', message: expect.stringContaining(`The disk of "${disk.path}`) },
    });
    expect([await kindOf(store), await kindOf(store, OLD)]).toEqual(['pullable', 'present']);
    await expect(stat(fileIn(disk.path))).rejects.toThrow('ENOENT');
    // Again, on a disk that is full from the beginning.
    expect(await pull(storeAt(disk.path))).toMatchObject({ ok: false, failure: { reason: 'DiskFull' } });
    disk.resize(128);
    const before = hub.sentBytes();
    expect(await pull(storeAt(disk.path))).toEqual({ ok: true, value: undefined });
    await expectComplete(disk.path);
    // 24 MiB were there, and a part of them in blocks that were not complete.
    expect(hub.sentBytes() - before).toBeLessThan(SIZE - 8 * MIB);
  });

  test('without room for a pin, or with room for less than the model, is not even begun', async () => {
    const filler = path.join(disk.path, 'filler');
    await writeFile(filler, Buffer.alloc(23 * MIB)).catch(() => undefined);
    await writeFile(path.join(disk.path, 'more'), Buffer.alloc(2 * MIB)).catch(() => undefined);
    expect(await pull(storeAt(disk.path))).toMatchObject({ ok: false, failure: { reason: 'DiskFull' } });
    await rm(filler);
    const message = expect.stringMatching(
      /^The disk of ".*" has \d+ free bytes, but \d+ are needed for the download, and 1258291 stay free for other programs; free disk space, or move the model store with "SVC_MODELS_DIR"$/,
    );
    expect(await pull(storeAt(disk.path, createDiskRoom()))).toMatchObject({ ok: false, failure: { reason: 'DiskFull', message } });
    expect(hub.sentBytes()).toBe(0);
    expect(await kindOf(storeAt(disk.path), OLD)).toBe('present');
  });

  test('holds a model if a twentieth of the disk stays free', async () => {
    disk.resize(56);
    expect(await pull(storeAt(disk.path, createDiskRoom()))).toEqual({ ok: true, value: undefined });
  });

  test('that is read-only fails with what to do, and its models are there', async () => {
    disk.setReadOnly(true);
    const store = storeAt(disk.path);
    expect(await pull(store)).toMatchObject({
      ok: false,
      failure: { kind: 'stalled', reason: 'ModelStoreReadOnly', message: expect.stringContaining('make it writable') },
    });
    expect(await kindOf(store, OLD)).toBe('present');
    disk.setReadOnly(false);
    disk.resize(128);
    expect(await pull(store)).toEqual({ ok: true, value: undefined });
  });

  test('takes models of another file system by copy, and a copy that does not fit leaves nothing', async () => {
    const elsewhere = await mkdtemp(path.join(tmpdir(), 'svc-elsewhere-'));
    try {
      const directory = path.join(elsewhere, 'owner/repo');
      await mkdir(directory, { recursive: true });
      await writeFile(path.join(directory, 'm-Q8_0.gguf'), encodeDemoModel('demo-owl'));
      const models = await findForeignModels('lm-studio', elsewhere);
      const take = async () => {
        const [model] = models;
        if (model === undefined) throw new Error('No model was found');
        const { pins } = storeAt(disk.path).sources;
        return importModel({ root: disk.path, pins, formats: MODEL_FORMATS, onFile: () => {} }, model, signal);
      };
      await writeFile(path.join(disk.path, 'filler'), Buffer.alloc(23 * MIB));
      expect(await take()).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'DiskFull' } });
      expect((await readdir(disk.path, { recursive: true })).filter((name) => name.includes('.gguf') && name !== OLD)).toEqual([]);
      disk.resize(600);
      expect(await take()).toMatchObject({ ok: true, value: { how: 'copy' } });
      disk.setReadOnly(true);
      await writeFile(path.join(directory, 'm-Q8_0.gguf'), encodeDemoModel('demo-fox'));
      expect(await take()).toMatchObject({ ok: false, failure: { kind: 'stalled', reason: 'ModelStoreReadOnly' } });
    } finally {
      await rm(elsewhere, { recursive: true, force: true });
    }
  });
});

describe('a store that is removed', () => {
  let above = '';
  beforeEach(async () => {
    above = await mkdtemp(path.join(tmpdir(), 'svc-gone-'));
  });
  afterEach(() => rm(above, { recursive: true, force: true }));

  test('while the service runs has no models, and is created again by the next download', async () => {
    const root = path.join(above, 'models');
    await mkdir(root);
    await writeFile(path.join(root, OLD), encodeDemoModel('demo-fox'));
    const store = storeAt(root);
    expect(await kindOf(store, OLD)).toBe('present');
    await rm(root, { recursive: true });
    expect([await kindOf(store, OLD), await kindOf(store)]).toEqual(['missing', 'pullable']);
    expect(await store.list(signal)).not.toContainEqual(expect.objectContaining({ id: OLD }));
    expect(await pull(store)).toEqual({ ok: true, value: undefined });
    await expectComplete(root);
  });

  test('with the directory above it says so, and asks to put it back', async () => {
    const root = path.join(above, 'disk/models');
    const message = expect.stringContaining(
      `The directory "${path.join(above, 'disk')}" of the model store does not exist; restore or create it`,
    );
    expect(await pull(storeAt(root))).toMatchObject({ ok: false, failure: { kind: 'retry', message } });
  });

  test('during a download fails that download, and the next one succeeds', async () => {
    const root = path.join(above, 'models');
    await mkdir(root);
    hub.bytesPerSecond = 20 * MIB;
    const store = storeAt(root);
    const pulling = pull(store);
    await eventually('it has begun', () => (store.pulls.list()[0]?.progress?.doneBytes ?? 0) > 4 * MIB);
    await rm(root, { recursive: true, maxRetries: 5 });
    expect(await pulling).toMatchObject({ ok: false, failure: { kind: 'retry' } });
    hub.bytesPerSecond = undefined;
    expect(await pull(store)).toEqual({ ok: true, value: undefined });
    await expectComplete(root);
  });
});

const WAITS = 'm-Q8_0.gguf (downloaded by another program)';

describe('two services on one store', () => {
  let root = '';
  beforeEach(async () => {
    root = await mkdtemp(path.join(tmpdir(), 'svc-shared-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  test('download a model once: one waits for the other, and both have it', async () => {
    // On a busy machine, the second one may begin seconds later: the hub is slow until it waits.
    hub.bytesPerSecond = MIB;
    const [one, other] = [storeAt(root, ANY_ROOM, 'one'), storeAt(root, ANY_ROOM, 'other')];
    const seen: string[] = [];
    // Either of them may come first.
    const note = ({ what }: { readonly what: string }): void => {
      seen.push(what);
      if (what === WAITS) hub.bytesPerSecond = undefined;
    };
    const results = await Promise.all([one, other].map(async (each) => each.pull(MODEL, note, signal)));
    expect(results).toEqual([ok(undefined), ok(undefined)]);
    await expectComplete(root);
    expect(hub.sentBytes()).toBeLessThan(SIZE + MIB);
    expect(seen).toContain(WAITS);
  });

  test('continue a download of the other one that was interrupted', async () => {
    hub.bytesPerSecond = 20 * MIB;
    const one = storeAt(root, ANY_ROOM, 'one');
    const stop = new AbortController();
    const first = one.pull(MODEL, () => {}, stop.signal);
    await eventually('it has begun', () => (one.pulls.list()[0]?.progress?.doneBytes ?? 0) > 20 * MIB);
    stop.abort();
    expect(await first).toMatchObject({ ok: false, failure: { reason: 'Aborted' } });
    await eventually('it has ended', async () => (await readdir(path.dirname(fileIn(root)))).length === 2);
    hub.bytesPerSecond = undefined;
    const before = hub.sentBytes();
    expect(await pull(storeAt(root, ANY_ROOM, 'other'))).toMatchObject({ ok: true });
    await expectComplete(root);
    expect(hub.sentBytes() - before).toBeLessThan(SIZE - 8 * MIB);
  });
});
