/** An edit brings a model that fails the cases of its slot: it is reverted by itself, and clients lose nothing. */
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { BUILDS, writeBuild, writeFailingBuild } from '../support/llama-builds.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { chatText, condition, isAnswering, servingProcess, startService, type Service, type SlotView } from '../support/service.ts';

const FOX = DEMO_SENTENCES['demo-fox'];
const OWL = DEMO_SENTENCES['demo-owl'];

const question = (content: string) => ({ messages: [{ role: 'user', content }], max_tokens: 24 });
const knows = (word: string) => ({ request: question(`Who knows the ${word}?`), expect: { contains: word }, required: true });
const callsTool = {
  request: {
    ...question('What is the weather in Oslo?'),
    tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }],
  },
  expect: { tool: { name: 'weather' } },
};

const hasCondition = (type: string, status: string, reason: string) => (slot: SlotView | undefined) => {
  const found = condition(slot, type);
  return found?.status === status && found.reason === reason;
};
const isRolledBack = hasCondition('Stalled', 'True', 'RolledBack');
const isInForce = hasCondition('UpToDate', 'True', 'SpecInForce');

describe('A new model that fails the cases of its slot', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
  }, 300_000);
  afterAll(() => service.dispose(), 60_000);

  const rollout = async (verb: string, ...args: readonly string[]) =>
    await svcctl(['rollout', verb, 'slot/primary', ...args], { env: { SVCCTL_SERVER: service.url } });
  const explain = async () => (await svcctl(['explain', 'primary'], { env: { SVCCTL_SERVER: service.url } })).out;
  const check = async (...cases: readonly object[]) => {
    await mkdir(path.join(service.configDir, 'checks'), { recursive: true });
    await writeFile(path.join(service.configDir, 'checks', 'golden.jsonl'), cases.map((each) => `${JSON.stringify(each)}\n`).join(''));
  };
  const save = async (model: string, { swap = 'auto', rules = '', more = '' } = {}) =>
    await service.save(
      'primary',
      `backend = "cpu"\n${more}[model]\ndefault = "${model}"\n[lifecycle]\nswap = "${swap}"\n[rollout]\ncheck = "checks/golden.jsonl"\n${rules}`,
    );
  const ask = async (): Promise<string> => {
    const answer = await service.chat({ max_tokens: 24 });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return await chatText(answer);
  };

  test('the first model serves, whatever it answers', async () => {
    await check(knows('owl'));
    await save('demo-fox');
    await service.until('primary', 'in force', isInForce);
    expect(await ask()).toBe(FOX);
  }, 120_000);

  test.each(['auto', 'drain'])(
    'is reverted with swap = "%s", no request is lost, and the reason can be read',
    async (swap) => {
      await check(knows('fox'), { ...knows('dog'), required: false });
      await save('demo-fox', { swap });
      await service.until('primary', 'in force', isInForce);
      const before = await servingProcess(service);
      const loop = startRequestLoop(ask, 4);
      await save('demo-owl', { swap });
      const slot = await service.until('primary', 'rolled back', isRolledBack);
      await service.until('primary', 'ready', (seen) => isAnswering(seen) && condition(seen, 'Reconciling')?.status === 'False');
      await loop.end();
      expect([loop.failures, [...loop.answers]]).toEqual([[], [FOX]]);
      expect(condition(slot, 'Stalled')?.message).toContain('0 of 2 cases passed (0 %)');
      expect(slot.status).toMatchObject({ rollout: { score: { cases: 2, passed: 0, before: null } } });
      if (swap === 'auto') expect(await servingProcess(service)).toBe(before);
      expect(await explain()).toContain(`case 1 (required): "Who knows the fox?"\n    expected: `);
      expect(await explain()).toContain(`answered: "${OWL}"`);
      expect(await rollout('status', '--timeout', '20s')).toMatchObject({ code: 1, err: expect.stringContaining('Who knows the fox?') });
      expect(JSON.parse((await rollout('history', '-o', 'json')).out).revisions.at(-1)).toMatchObject({
        outcome: 'rolled_back',
        spec: { model: { default: 'demo-owl' } },
      });
    },
    180_000,
  );

  test('stays reverted over a kill, is not judged again, and an undo writes the text that serves', async () => {
    const before = await servingProcess(service);
    await service.kill('SIGKILL');
    await service.start();
    await service.until('primary', 'still rolled back', isRolledBack);
    expect([await ask(), await servingProcess(service)]).toEqual([FOX, before]);
    expect(await explain()).toContain('case 1 (required): "Who knows the fox?"');
    expect(await rollout('undo', '--wait')).toMatchObject({ code: 0 });
    expect([await ask(), await servingProcess(service)]).toEqual([FOX, before]);
  }, 120_000);

  test('is judged anew when the cases are edited, and serves once it passes', async () => {
    await save('demo-owl', { swap: 'drain' });
    await service.until('primary', 'rolled back', isRolledBack);
    await check(knows('owl'));
    await service.until('primary', 'in force', isInForce);
    expect(await ask()).toBe(OWL);
  }, 120_000);

  test.each([
    ['is too slow', '', 'limits = { tokens_per_second = 1000000 }', 'The speed is'],
    ['answers too late', '', 'limits = { first_token_p95 = "1ms" }', 'The time to the first token'],
    ['calls no tool', JSON.stringify(callsTool), 'pass = 0.9', '0 of 1 cases passed'],
    ['is worse than the old one', JSON.stringify(knows('owl')).replace('true', 'false'), 'pass = 0\ncompare = true', 'before 100 %'],
  ])(
    '%s',
    async (_what, only, rules, because) => {
      await check(only === '' ? { request: question('Anything?'), expect: { matches: '.' } } : JSON.parse(only));
      await save('demo-fox', { rules });
      const slot = await service.until('primary', 'rolled back', isRolledBack);
      expect(condition(slot, 'Stalled')?.message).toContain(because);
      expect(await ask()).toBe(OWL);
      await save('demo-owl', { rules });
      await service.until('primary', 'in force', isInForce);
    },
    120_000,
  );

  test('is held without requests while the old one serves, and reverted once that is gone', async () => {
    await check(knows('owl'));
    await save('demo-fox', { rules: 'on_failure = "hold"' });
    const slot = await service.until('primary', 'held', hasCondition('Stalled', 'True', 'EvaluationFailed'));
    expect(condition(slot, 'Ready')).toMatchObject({ status: 'True', reason: 'PreviousServes' });
    expect(condition(slot, 'Reconciling')).toMatchObject({ status: 'False' });
    expect(await ask()).toBe(OWL);
    process.kill((await servingProcess(service)) ?? 0, 'SIGKILL');
    await service.until('primary', 'rolled back', isRolledBack);
    await service.until('primary', 'ready', isAnswering);
    expect(await ask()).toBe(OWL);
  }, 120_000);

  describe('that is watched', () => {
    const start = async (model: string, program: string | undefined) => {
      const more = program === undefined ? '' : `program = { path = "${program}" }\n`;
      await service.save('primary', `backend = "cpu"\n${more}[model]\ndefault = "${model}"\n[rollout]\nwatch = "30m"\n`);
    };
    const placesIn = async (name: string) => {
      const dir = path.join(service.configDir, name);
      return [dir, { help: path.join(dir, 'help.txt'), real: path.join(await directoryOfLlamaServer(), 'llama-server') }] as const;
    };
    const isWatched = async () =>
      await eventually(
        'the new model is watched',
        async () => (await explain()).includes('is watched for 30m from its first answer on'),
        60_000,
      );
    beforeEach(async () => {
      await start('demo-owl', undefined);
      await service.until('primary', 'in force', isInForce);
    }, 120_000);

    test('and crashes after it has served is reverted, and no request is lost', async () => {
      const [dir, places] = await placesIn('crashing');
      const program = await writeBuild(BUILDS.newer, dir, { ...places, first: '(sleep 12; kill -SEGV $$) &' });
      const loop = startRequestLoop(ask, 4);
      await start('demo-fox', program);
      await isWatched();
      const slot = await service.until('primary', 'rolled back', isRolledBack);
      await service.until('primary', 'ready', isAnswering);
      await loop.end();
      expect([loop.failures, [...loop.answers].sort()]).toEqual([[], [FOX, OWL].sort()]);
      expect(condition(slot, 'Stalled')?.message).toMatch(
        /It was watched for 30m \("watch"\): The process of the server ended unexpectedly/u,
      );
      expect(await ask()).toBe(OWL);
      expect(JSON.parse((await rollout('history', '-o', 'json')).out).revisions.at(-1)).toMatchObject({ outcome: 'rolled_back' });
    }, 180_000);

    test('and fails requests is reverted', async () => {
      const [dir, places] = await placesIn('failing');
      const program = await writeFailingBuild(BUILDS.newer, dir, places);
      await start('demo-fox', program);
      await isWatched();
      const answers = [];
      for (let count = 0; count < 5; count += 1) answers.push((await service.chat({ max_tokens: 4 })).status);
      expect(answers).toEqual([500, 500, 500, 500, 500]);
      const slot = await service.until('primary', 'rolled back', isRolledBack);
      expect(condition(slot, 'Stalled')?.message).toContain('Its server failed 5 of 5 requests');
      await service.until('primary', 'ready', isAnswering);
      expect(await ask()).toBe(OWL);
    }, 180_000);

    test('is watched again from the beginning after a kill of the controller', async () => {
      const [dir, places] = await placesIn('killed');
      const program = await writeBuild(BUILDS.newer, dir, { ...places, first: '(sleep 25; kill -SEGV $$) &' });
      await start('demo-fox', program);
      await isWatched();
      await service.kill('SIGKILL');
      await service.start();
      await service.until('primary', 'rolled back', isRolledBack);
      await service.until('primary', 'ready', isAnswering);
      expect(await ask()).toBe(OWL);
    }, 180_000);
  });

  test('waits while rollouts are paused, and is judged when they are resumed', async () => {
    await save('demo-owl');
    await service.until('primary', 'in force', isInForce);
    expect(await rollout('pause')).toMatchObject({ code: 0 });
    await save('demo-fox', { rules: 'paused = true' });
    await service.until('primary', 'waiting', hasCondition('UpToDate', 'False', 'Paused'));
    expect(await ask()).toBe(OWL);
    expect(await rollout('resume')).toMatchObject({ code: 0 });
    await service.until('primary', 'rolled back', isRolledBack);
    expect(await ask()).toBe(OWL);
  }, 120_000);

  test('is judged again by a controller that was killed meanwhile', async () => {
    await check(...Array.from({ length: 40 }, () => knows('owl')));
    await save('demo-owl', { more: 'priority = 1\n' });
    await service.until('primary', 'in force', isInForce);
    await save('demo-fox', { more: 'priority = 1\n', swap: 'drain' });
    await service.until('primary', 'judged', (seen) => hasCondition('Ready', 'False', 'Evaluating')(seen) || isRolledBack(seen));
    await service.kill('SIGKILL');
    await service.start();
    await service.until('primary', 'rolled back', isRolledBack);
    await service.until('primary', 'ready', isAnswering);
    expect(await ask()).toBe(OWL);
  }, 120_000);

  test('that cannot start is reverted as well, and a mistake in the cases is one of the text', async () => {
    await save('demo-fox', { more: 'priority = 2\n', swap: 'drain', rules: '[env]\nLD_PRELOAD = "/nowhere"\n[model.presets]\n' });
    await writeFile(path.join(service.configDir, 'checks', 'golden.jsonl'), '{"request": {}}\n');
    const slot = await service.until('primary', 'invalid', hasCondition('SpecValid', 'False', 'SpecInvalid'));
    expect(condition(slot, 'SpecValid')?.message).toContain('"checks/golden.jsonl" has a mistake: Line 1');
    expect(await ask()).toBe(OWL);
  }, 120_000);
});
