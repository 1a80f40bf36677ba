/** The store of prompts with servers that do not do what they say. */
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createPromptStore } from '../../../src/models/prompts/prompt-store.ts';
import type { ProbeIo, ProbeResponse } from '../../../src/providers/provider.ts';
import { gguf } from '../../../src/providers/gguf/gguf.ts';
import { Revision, SlotName } from '../../../src/schema/words/names.ts';

const slot = SlotName.parse('primary');
const SERVER = {
  slot,
  variable: 'LLAMA_ARG_SLOT_SAVE_PATH',
  endpoint: { host: '127.0.0.1', port: 18_080 },
  revision: Revision.parse('0123456789ab'),
  modelFiles: '1-2-3',
};
const signal = new AbortController().signal;
let root: string;
let used = 0;
beforeEach(async () => void (root = join(await mkdtemp(join(tmpdir(), 'svc-prompts-')), 'prompts')));
afterEach(async () => await rm(join(root, '..'), { recursive: true, force: true }));

interface Faults {
  readonly places?: number;
  readonly tokens?: number;
  readonly build?: string;
  /** How many times it does not say which build it is. */
  readonly silences?: number;
  /** Replaces the answer. */
  readonly move?: (file: string, restores: boolean) => Promise<ProbeResponse | undefined> | ProbeResponse | undefined;
}

/** A server that writes and reads files as llama-server does. */
function storeWith(
  { places = 2, tokens = 900, build = 'b11669', silences = 0, move = () => undefined }: Faults = {},
  limitBytes = 100_000,
) {
  const asked: string[] = [];
  const warnings: string[] = [];
  let silent = silences;
  const request: ProbeIo['request'] = async (_endpoint, { path, body = '{}' }) => {
    asked.push(path);
    if (path === '/props' && silent > 0) {
      silent -= 1;
      return { status: 0, body: '', error: 'No answer within 3000 ms' };
    }
    if (path === '/props') return { status: 200, body: JSON.stringify({ build_info: build, total_slots: places }) };
    const restores = path.endsWith('restore');
    const { filename } = JSON.parse(String(body));
    const file = join(root, slot, filename);
    const other = await move(file, restores);
    if (other !== undefined) return other;
    // Each place has a conversation of its own.
    if (!restores) await writeFile(file, conversationOf(path));
    return { status: 200, body: JSON.stringify(restores ? { n_restored: tokens } : { n_saved: tokens }) };
  };
  const log = { info: () => undefined, warn: (_about: object, text: string) => void warnings.push(text) };
  const store = createPromptStore({ root, limitBytes, providers: { gguf }, probeIo: { request }, log });
  return { ...store, asked, warnings };
}

function conversationOf(place: string): Buffer {
  const head = Buffer.from('7173676704000000d80b0000ffffffff01000000d40b0000', 'hex');
  return Buffer.concat([head, Buffer.alloc(4000 - head.length, place)]);
}

const files = async () => (await readdir(join(root, slot))).toSorted();

describe('kept prompts', () => {
  test('are offered once, to a server with the same key', async () => {
    const store = storeWith();
    await store.prepare(slot);
    expect(await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal)).toMatchObject({
      direction: 'save',
      tokens: 1800,
      conversations: 2,
      problems: [],
    });
    expect(await files()).toHaveLength(2);
    expect(await storeWith({ build: 'other' }).restore(SERVER, 1000, signal)).toBeUndefined();
    expect(await store.restore({ ...SERVER, modelFiles: 'other' }, 1000, signal)).toBeUndefined();
    expect(await files()).toHaveLength(2);
    expect(await store.restore(SERVER, 1000, signal)).toMatchObject({ direction: 'restore', tokens: 1800, conversations: 2, problems: [] });
    expect(await files()).toEqual([]);
    expect(await store.restore(SERVER, 1000, signal)).toBeUndefined();
    // What was restored once is worth more than what was not.
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    expect((await files()).map((name) => name.replace(/^[0-9a-f]{16}-\d+-/, ''))).toEqual(['900-1.prompt', '900-1.prompt']);
  });

  test('of one conversation are kept once, and those of others beside them', async () => {
    const store = storeWith();
    await store.prepare(slot);
    await store.save(SERVER, { budgetMs: 1000, usedAt: 1 }, signal);
    const before = await files();
    await store.save(SERVER, { budgetMs: 1000, usedAt: 2 }, signal);
    expect(await files()).toHaveLength(2);
    expect(await files()).not.toEqual(before);
    // The places have been taken by others, or are empty.
    await storeWith({ tokens: 1 }).save(SERVER, { budgetMs: 1000, usedAt: 3 }, signal);
    expect(await files()).toHaveLength(2);
  });

  test('are saved again once something has used the server, and not too often', async () => {
    const store = storeWith();
    await store.prepare(slot);
    const saved = async (usedAt: number, pauseMs?: number) =>
      (await store.save(SERVER, { budgetMs: 1000, usedAt, ...(pauseMs === undefined ? {} : { pauseMs }) }, signal)) !== undefined;
    expect([await saved(1), await saved(1), await saved(2, 60_000), await saved(2), await saved(2)]).toEqual([
      true,
      false,
      false,
      true,
      false,
    ]);
    const aborted = new AbortController();
    aborted.abort();
    await store.save(SERVER, { budgetMs: 1000, usedAt: 3 }, aborted.signal);
    expect(await saved(3)).toBe(true);
  });

  test('of one conversation that is larger than the limit are not kept, and not asked for again soon', async () => {
    const store = storeWith({}, 3000);
    await store.prepare(slot);
    const save = async (usedAt: number, pauseMs: number) => await store.save(SERVER, { budgetMs: 1000, usedAt, pauseMs }, signal);
    expect(await save(1, 20)).toMatchObject({ conversations: 0, problems: [expect.stringContaining('SVC_PROMPT_CACHE_LIMIT')] });
    expect(await files()).toEqual([]);
    await new Promise((resolve) => setTimeout(resolve, 30));
    expect(await save(2, 20)).toBeUndefined();
    expect(await save(2, 0)).toMatchObject({ conversations: 0 });
  });

  test('are saved and restored at the next occasion where a busy server did not answer, and the reason is told', async () => {
    const problems = (which: string) => [`not ${which}: the server does not answer: No answer within 3000 ms`];
    const store = storeWith({ silences: 1 });
    await store.prepare(slot);
    const save = async (pauseMs: number) => await store.save(SERVER, { budgetMs: 1000, usedAt: 1, pauseMs }, signal);
    expect(await save(60_000)).toMatchObject({ direction: 'save', tokens: 0, conversations: 0, problems: problems('saved') });
    expect(await save(0)).toMatchObject({ conversations: 2, problems: [] });
    const next = storeWith({ silences: 1 });
    expect(await next.restore(SERVER, 1000, signal)).toMatchObject({ direction: 'restore', tokens: 0, problems: problems('restored') });
    expect(await files()).toHaveLength(2);
    expect(await next.restore(SERVER, 1000, signal)).toMatchObject({ conversations: 2, problems: [] });
  });

  test('of a few tokens are not kept', async () => {
    const store = storeWith({ tokens: 255 });
    await store.prepare(slot);
    expect(await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal)).toBeUndefined();
    expect(await files()).toEqual([]);
  });

  test('take no more disk space than they may', async () => {
    const store = storeWith({ places: 5 }, 10_000);
    await store.prepare(slot);
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    expect(await files()).toHaveLength(2);
  });

  test.each<[string, Faults, object | undefined]>([
    ['answers 200 and saves nothing', { move: () => ({ status: 200, body: '{"n_saved":900}' }) }, undefined],
    [
      'answers 200 and something else',
      { move: () => ({ status: 200, body: '<html>' }) },
      { tokens: 0, problems: ['not saved: the server answers 200: <html>'] },
    ],
    ['refuses', { move: () => ({ status: 501, body: 'no' }) }, { tokens: 0, problems: ['not saved: the server answers 501: no'] }],
    [
      'answers megabytes',
      { move: () => ({ status: 500, body: 'x'.repeat(2 ** 22) }) },
      { problems: [`not saved: the server answers 500: ${'x'.repeat(200)}`] },
    ],
    [
      'does not answer',
      { move: () => ({ status: 0, body: '', error: 'time' }) },
      { problems: ['not saved: the server does not answer: time'] },
    ],
    [
      'puts a link in place',
      { move: async (file) => symlink('/etc/passwd', file).then(() => ({ status: 200, body: '{"n_saved":900}' })) },
      { tokens: 0, problems: [expect.stringContaining('is not a file of the server')] },
    ],
  ])('of a server that %s do not exist', async (_, faults, expected) => {
    const store = storeWith(faults);
    await store.prepare(slot);
    const report = await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    if (expected === undefined) expect(report).toBeUndefined();
    else expect(report).toMatchObject(expected);
    expect(await files()).toEqual([]);
  });

  test('that a server does not accept are gone, and the reason is told', async () => {
    const store = storeWith();
    await store.prepare(slot);
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    const refusing = storeWith({ move: () => ({ status: 400, body: 'bad file' }) });
    expect(await refusing.restore(SERVER, 1000, signal)).toMatchObject({
      tokens: 0,
      problems: Array.from({ length: 2 }, () => 'not restored: the server answers 400: bad file'),
    });
    await storeWith().save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    expect(await storeWith({ tokens: 899 }).restore(SERVER, 1000, signal)).toMatchObject({
      problems: [expect.stringContaining('the server has read 899 of 900 tokens'), expect.anything()],
    });
    expect(await files()).toEqual([]);
  });

  test('are gone when a server has died of them', async () => {
    const store = storeWith();
    await store.prepare(slot);
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    const seen: string[][] = [];
    const dying = storeWith({
      move: async () => {
        seen.push(await files());
        return { status: 0, body: '', error: 'ECONNRESET' };
      },
    });
    await dying.restore(SERVER, 1000, signal);
    // While the server reads it, it has no name under which it would be offered again.
    expect(seen[0]?.filter((name) => name.endsWith('.part'))).toHaveLength(1);
    expect(await store.restore(SERVER, 1000, signal)).toBeUndefined();
  });

  test('are not saved beyond the budget', async () => {
    const store = storeWith({ places: 3, move: async () => void (await new Promise((resolve) => setTimeout(resolve, 60))) });
    await store.prepare(slot);
    const report = await store.save(SERVER, { budgetMs: 50, usedAt: (used += 1) }, signal);
    expect(report).toMatchObject({ conversations: 1, problems: ['2 of 3 places were not saved in time'] });
  });

  test('that a killed service was saving are not there for the next one', async () => {
    const store = storeWith();
    await store.prepare(slot);
    await writeFile(join(root, slot, '0123456789abcdef-0.part'), 'half');
    await store.prepare(slot);
    expect(await files()).toEqual([]);
    const report = await store.restore(SERVER, 1000, signal);
    expect(report).toMatchObject({ conversations: 0, problems: [expect.stringContaining('the service ended while')] });
    expect(await store.restore(SERVER, 1000, signal)).toBeUndefined();
  });

  test('that a killed service was restoring are gone as soon as the next one begins, and those beside them are restored', async () => {
    const first = storeWith();
    await first.prepare(slot);
    await first.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    await writeFile(join(root, slot, '0123456789abcdef-0.part'), 'half');
    const store = storeWith();
    store.keepOnly(new Set([slot]));
    const report = await store.restore(SERVER, 1000, signal);
    expect(report).toMatchObject({ conversations: 2, problems: [expect.stringContaining('the service ended while')] });
    expect(await files()).toEqual([]);
  });

  test('are deleted with their slot, and what is foreign as well', async () => {
    const store = storeWith();
    await store.prepare(slot);
    await store.prepare(SlotName.parse('removed'));
    await writeFile(join(root, slot, 'foreign'), '');
    await mkdir(join(root, slot, 'directory'));
    await symlink('/etc/passwd', join(root, slot, '0123456789abcdef-0-900-0.prompt'));
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    expect(await files()).toHaveLength(2);
    store.keepOnly(new Set([slot]));
    await store.save(SERVER, { budgetMs: 1000, usedAt: (used += 1) }, signal);
    expect(await readdir(root)).toEqual([slot]);
  });

  test('have no directory where something else is in its place', async () => {
    const store = storeWith();
    await mkdir(root);
    await symlink('/tmp', join(root, slot));
    expect(await store.prepare(slot)).toContain('is not a directory');
    expect(store.warnings).toEqual([expect.stringContaining('Prompts are not kept')]);
  });

  test('leave alone what is behind a link, in the place of a slot or of all of them', async () => {
    const elsewhere = join(root, '../elsewhere');
    await mkdir(join(elsewhere, 'primary'), { recursive: true });
    await writeFile(join(elsewhere, 'primary/file'), 'precious');
    await mkdir(root);
    await symlink(join(elsewhere, 'primary'), join(root, 'linked'));
    const store = storeWith();
    await store.prepare(slot);
    await store.save(SERVER, { budgetMs: 1000, usedAt: 1 }, signal);
    store.keepOnly(new Set([slot]));
    await store.restore(SERVER, 1000, signal);
    expect(await readdir(root)).toEqual([slot]);
    await rm(root, { recursive: true });
    await symlink(elsewhere, root);
    const linked = storeWith();
    expect(await linked.prepare(slot)).toContain('is not a directory');
    linked.keepOnly(new Set());
    expect(await linked.restore(SERVER, 1000, signal)).toBeUndefined();
    expect(await readFile(join(elsewhere, 'primary/file'), 'utf8')).toBe('precious');
  });
});
