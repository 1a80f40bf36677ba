/** Cases of slots in files and in place: what is read, which mistakes are those of the text, and what survives them. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Settlement, Verdict } from '../../../src/evaluation/decide/rollout-state.ts';
import { createTomlDirectory } from '../../../src/host/slots/toml-directory.ts';
import type { DesiredSlot, SlotSource } from '../../../src/reconciler/ports.ts';
import { formatProblem } from '../../../src/schema/slot/spec-problem.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { eventually } from '../../support/eventually.ts';

const PRIMARY = SlotName.parse('primary');
const CASE = '{"request": {"messages": [{"role": "user", "content": "2 + 2?"}]}, "expect": {"contains": "4"}}\n';
const IN_PLACE =
  '[[rollout.cases]]\nrequest = { messages = [{ role = "user", content = "2 + 2?" }], max_tokens = 5 }\nexpect = { contains = "4" }\n';

describe('cases of a slot', () => {
  let dir: string;
  let source: SlotSource;
  beforeEach(async () => {
    dir = await mkdtemp(path.join(tmpdir(), 'svc-checks-'));
    for (const part of ['config/slots', 'config/checks', 'state/slots']) await mkdir(path.join(dir, part), { recursive: true });
    source = open();
  });
  afterEach(() => rm(dir, { recursive: true, force: true }));

  const silent = { info: () => undefined, warn: () => undefined };
  const open = (): SlotSource =>
    createTomlDirectory({
      directory: path.join(dir, 'config/slots'),
      lastGoodDirectory: path.join(dir, 'state/slots'),
      quietPeriodMs: 1,
      log: silent,
    });
  const write = async (file: string, text: string) => await writeFile(path.join(dir, 'config', file), text);
  const save = async (model: string, rollout = 'check = "checks/a.jsonl"') =>
    await write('slots/primary.toml', `[model]\ndefault = "${model}"\n[rollout]\n${rollout}\n`);
  async function read(): Promise<DesiredSlot | undefined> {
    const state = await source.read(new AbortController().signal);
    return state.ok ? state.value.slots.get(PRIMARY) : undefined;
  }
  async function refusal(): Promise<string | undefined> {
    const state = await source.read(new AbortController().signal);
    const problems = state.ok ? (state.value.slots.get(PRIMARY)?.problems ?? state.value.refused.get(PRIMARY)) : [];
    return problems?.map((each) => formatProblem(each)).join('; ');
  }
  async function settle(settlement: Settlement): Promise<DesiredSlot | undefined> {
    source.settle?.(PRIMARY, settlement);
    return await read();
  }
  const FAILED: Verdict = { outcome: 'rolled_back', revision: 'rev-b', checks: '', because: 'Too bad', misses: [] };
  const fails = (generation: number): Settlement => ({ kind: 'verdict', generation, verdict: FAILED });

  test('come from a file below the configuration directory, or stand in the slot', async () => {
    await write('checks/a.jsonl', CASE);
    await save('a.gguf');
    const first = await read();
    expect(first?.rollout?.checks?.cases).toMatchObject([{ expect: { contains: '4' } }]);
    expect(await read()).toBe(first);
    await write('slots/primary.toml', `[model]\ndefault = "a.gguf"\n${IN_PLACE}`);
    expect((await read())?.rollout?.checks?.cases).toMatchObject([{ request: { max_tokens: 5 }, expect: { contains: '4' } }]);
  });

  test.each([
    ['a file that is missing', 'check = "checks/none.jsonl"', '"checks/none.jsonl" does not exist below the configuration directory'],
    ['a directory', 'check = "checks"', '"checks" cannot be read: This is a directory'],
    ['a path to the outside', 'check = "checks/../../secret"', 'Write a path below the configuration directory'],
    ['an absolute path', 'check = "/etc/passwd"', 'Write a path below the configuration directory'],
    ['a file with a mistake', 'check = "checks/bad.jsonl"', '"checks/bad.jsonl" has a mistake: Line 2'],
    ['a file and a list', `check = "checks/a.jsonl"\n${IN_PLACE}`, '"check" and a list in "cases" are two sets of cases'],
    ['rules without cases', 'pass = 0.5', 'Without cases there is nothing to judge'],
    ['a tolerance without a comparison', 'check = "checks/a.jsonl"\ntolerance = 0.1', 'set "compare" to true'],
    ['a pattern that is none', '[[rollout.cases]]\nrequest = { messages = [] }\nexpect = { matches = "(" }', 'expect.matches'],
    ['a time that is none', 'watch = "soon"', 'rollout.watch'],
  ])('%s is a mistake of the text, which says where', async (_what, rollout, message) => {
    await write('checks/a.jsonl', CASE);
    await write('checks/bad.jsonl', `${CASE}{"request": {}}\n`);
    await save('a.gguf', rollout);
    expect(await refusal()).toContain(message);
  });

  test('a mistake keeps the last valid text in force, with its cases', async () => {
    await write('checks/a.jsonl', CASE);
    await save('a.gguf');
    await read();
    await write('checks/a.jsonl', 'nothing\n');
    await save('b.gguf');
    expect(await read()).toMatchObject({ generation: 1, spec: { model: { default: 'a.gguf' } }, rollout: { checks: { cases: [{}] } } });
    await write('checks/a.jsonl', CASE);
    expect(await read()).toMatchObject({ generation: 2, spec: { model: { default: 'b.gguf' } }, problems: [] });
  });

  test('a verdict counts also while rollouts are paused', async () => {
    await write('checks/a.jsonl', CASE);
    await save('a.gguf');
    await read();
    await settle({ kind: 'served', generation: 1, revision: 'rev-a', at: 0 });
    await save('b.gguf');
    await read();
    await save('b.gguf', 'check = "checks/a.jsonl"\npaused = true');
    const paused = await read();
    expect(paused).toMatchObject({ generation: 3, spec: { model: { default: 'b.gguf' } }, rollout: { isOnTrial: true } });
    const verdict = { ...FAILED, checks: paused?.rollout?.checks?.digest ?? '' };
    expect(await settle({ kind: 'verdict', generation: 3, verdict })).toMatchObject({
      spec: { model: { default: 'a.gguf' } },
      rollout: { isOnTrial: false, rolledBack: {} },
    });
    await save('b.gguf');
    expect((await read())?.spec.model.default).toBe('a.gguf');
  });

  test('a text that failed waits over a restart, until it or its cases are edited', async () => {
    await write('checks/a.jsonl', CASE);
    await save('a.gguf');
    await read();
    expect((await settle({ kind: 'served', generation: 1, revision: 'rev-a', at: 0 }))?.rollout?.accepted?.revision).toBe('rev-a');
    await save('b.gguf');
    const onTrial = await read();
    expect(onTrial).toMatchObject({ generation: 2, spec: { model: { default: 'b.gguf' } }, rollout: { isOnTrial: true } });
    expect(await settle(fails(1))).toBe(onTrial);
    const verdict = { ...FAILED, checks: onTrial?.rollout?.checks?.digest ?? '' };
    const back = await settle({ kind: 'verdict', generation: 2, verdict });
    expect(back).toMatchObject({
      generation: 2,
      spec: { model: { default: 'a.gguf' } },
      rollout: { isOnTrial: false, rolledBack: { verdict } },
    });
    source = open();
    expect(await read()).toMatchObject({ generation: 2, spec: { model: { default: 'a.gguf' } }, rollout: { rolledBack: { verdict } } });
    await write('checks/a.jsonl', CASE + CASE);
    expect(await read()).toMatchObject({ generation: 2, spec: { model: { default: 'b.gguf' } }, rollout: { isOnTrial: true } });
  });

  test('a change of the file wakes, also of one that is named later', async () => {
    await write('checks/a.jsonl', CASE);
    const ending = new AbortController();
    let wakes = 0;
    source.changes(() => (wakes += 1), ending.signal);
    await save('a.gguf');
    await read();
    await rm(path.join(dir, 'config/slots/primary.toml'));
    await eventually('the watch has begun', async () => {
      const before = wakes;
      await write('checks/a.jsonl', CASE + ' '.repeat(wakes));
      await new Promise((resolve) => setTimeout(resolve, 50));
      return wakes > before;
    });
    ending.abort();
  });

  test('a link to a pipe is refused at once', async () => {
    await symlink('/dev/zero', path.join(dir, 'config/checks/zero.jsonl'));
    await save('a.gguf', 'check = "checks/zero.jsonl"');
    expect(await refusal()).toContain('"checks/zero.jsonl" cannot be read: This is a');
  });
});
