/** New models in containers: one that fails the cases of its slot, and one that crashes after it has served. Both are reverted. */
import { execFile } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { describeWithPodman, GGUF_TOOLBOX, PODMAN } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service, type SlotView } from '../support/service.ts';

const run = promisify(execFile);
const FOX = DEMO_SENTENCES['demo-fox'];
const CASE = { request: { messages: [{ role: 'user', content: 'Who?' }], max_tokens: 24 }, expect: { contains: 'fox' }, required: true };

const isRolledBack = (slot: SlotView | undefined): boolean => condition(slot, 'Stalled')?.reason === 'RolledBack';
const isInForce = (slot: SlotView | undefined): boolean => condition(slot, 'UpToDate')?.status === 'True' && isAnswering(slot);

describeWithPodman('A new model in a container', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'podman', toolboxes: GGUF_TOOLBOX });
    await mkdir(path.join(service.configDir, 'checks'));
    await writeFile(path.join(service.configDir, 'checks', 'golden.jsonl'), `${JSON.stringify(CASE)}\n`);
  }, 300_000);
  afterAll(() => service?.dispose(), 60_000);

  const save = async (model: string, rules: string) =>
    await service.save('primary', `backend = "cpu"\n[model]\ndefault = "${model}"\n[rollout]\n${rules}\n`);
  const ask = async (): Promise<string> => {
    const answer = await service.chat({ max_tokens: 24 });
    if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
    return await chatText(answer);
  };
  test('that answers nonsense gets no request, and is reverted', async () => {
    await save('demo-fox', 'check = "checks/golden.jsonl"');
    await service.until('primary', 'in force', isInForce);
    const loop = startRequestLoop(ask, 4);
    await save('demo-owl', 'check = "checks/golden.jsonl"');
    await service.until('primary', 'rolled back', isRolledBack);
    await loop.end();
    expect([loop.failures, [...loop.answers]]).toEqual([[], [FOX]]);
  }, 240_000);

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
});
