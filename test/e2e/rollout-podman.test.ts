/** New models in containers: one that fails the cases of its slot, and one that crashes after it has served. Both are reverted. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX, PODMAN } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service, type SlotView } from '../support/service.ts';

const run = promisify(execFile);
const FOX = DEMO_SENTENCES['demo-fox'];
const OWL = DEMO_SENTENCES['demo-owl'];
const CASE = { request: { messages: [{ role: 'user', content: 'Who?' }], max_tokens: 24 }, expect: { contains: 'fox' }, required: true };

const ANYTHING = { request: CASE.request, expect: { matches: '.' } };
const CALLS_TOOL = {
  request: {
    ...CASE.request,
    tools: [{ type: 'function', function: { name: 'weather', parameters: { type: 'object', properties: {} } } }],
  },
  expect: { tool: { name: 'weather' } },
};

const isRolledBack = (slot: SlotView | undefined): boolean => condition(slot, 'Stalled')?.reason === 'RolledBack';
const isInForce = (slot: SlotView | undefined): boolean => condition(slot, 'UpToDate')?.status === 'True' && isAnswering(slot);

describeWithPodmanSlots('A new model in a container', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX });
    await mkdir(path.join(service.configDir, 'checks'));
  }, 300_000);
  afterAll(() => service?.dispose(), 60_000);

  const save = async (model: string, rules: string) =>
    await service.save('primary', `backend = "cpu"\n[model]\ndefault = "${model}"\n[rollout]\n${rules}\n`);
  const ask = async (): Promise<string> => {
    const answer = await service.chat({ max_tokens: 24 });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return await chatText(answer);
  };
  test.each([
    ['answers nonsense', CASE, '', '0 of 1 cases passed'],
    ['is too slow', ANYTHING, 'limits = { tokens_per_second = 1000000 }', 'The speed is'],
    ['calls no tool', CALLS_TOOL, '', '0 of 1 cases passed'],
  ])(
    'that %s gets no request, and is reverted',
    async (_what, only, rules, because) => {
      const judged = `check = "checks/golden.jsonl"\n${rules}`;
      await writeFile(path.join(service.configDir, 'checks', 'golden.jsonl'), `${JSON.stringify(only)}\n`);
      await save('demo-fox', judged);
      await service.until('primary', 'in force', isInForce);
      const loop = startRequestLoop(ask, 4);
      await save('demo-owl', judged);
      const slot = await service.until('primary', 'rolled back', isRolledBack);
      await loop.end();
      expect([loop.failures, [...loop.answers]]).toEqual([[], [FOX]]);
      expect(condition(slot, 'Stalled')?.message).toContain(because);
    },
    240_000,
  );

  // Without clients: podman removes the rule of a published port some time after the container has died, and until then their packets
  // leave the machine for an address that nobody has.
  test('that crashes while it is watched is reverted', async () => {
    await save('demo-fox', 'watch = "30m"');
    await service.until('primary', 'in force', isInForce);
    await save('demo-owl', 'watch = "30m"');
    await service.until('primary', 'in force', (slot) => isInForce(slot) && slot?.status?.model === 'demo-owl');
    // Other suites have containers of such a slot, too.
    const port = new URL((await service.slot('primary'))?.status?.endpoint ?? '').port;
    const { stdout } = await run('podman', [...PODMAN, 'ps', '--format', '{{.ID}} {{.Ports}}']);
    const container = stdout.split('\n').find((line) => line.includes(`:${port}->`));
    await run('podman', [...PODMAN, 'kill', '--signal', 'KILL', container?.split(' ')[0] ?? '']);
    const slot = await service.until('primary', 'rolled back', isRolledBack);
    expect(condition(slot, 'Stalled')?.message).toContain('It was watched for 30m ("watch")');
    await service.until('primary', 'ready', isAnswering);
    expect(await ask()).toBe(FOX);
  }, 240_000);

  const rollout = async (verb: string, ...args: readonly string[]) =>
    await svcctl(['rollout', verb, 'slot/primary', ...args], { env: { SVCCTL_SERVER: service.url } });
  const saveEdit = async (model: string, priority: number, rules = '') =>
    await service.save('primary', `backend = "cpu"\npriority = ${priority}\n[model]\ndefault = "${model}"\n${rules}`);

  test('that is edited is undone to each of twenty revisions', async () => {
    for (let edit = 1; edit <= 20; edit += 1) {
      await saveEdit('demo-fox', edit);
      expect(await rollout('status')).toMatchObject({ code: 0 });
    }
    const { revisions } = JSON.parse((await rollout('history', '-o', 'json')).out);
    expect(revisions).toHaveLength(20);
    for (const { revision, spec } of revisions) {
      expect(await rollout('undo', '--to-revision', String(revision), '--wait')).toMatchObject({ code: 0 });
      expect(await (await fetch(`${service.url}/api/slots/primary`)).json()).toMatchObject({ spec: { priority: spec.priority } });
    }
    expect(await ask()).toBe(FOX);
  }, 240_000);

  test('waits while rollouts are paused', async () => {
    await saveEdit('demo-owl', 30, '[rollout]\npaused = true\n');
    await service.until('primary', 'paused', (slot) => condition(slot, 'UpToDate')?.reason === 'Paused');
    expect(await ask()).toBe(FOX);
    expect(await rollout('resume', '--wait')).toMatchObject({ code: 0 });
    expect(await ask()).toBe(OWL);
  }, 120_000);
});
