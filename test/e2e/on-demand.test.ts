/** Slots that load on demand and unload when idle, and slots that outlive their controller, as plain processes. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { chatText, isAnswering, pause, servingProcess, startService, type Service, type SlotView } from '../support/service.ts';

const slotOf = (model: string, more = '') => `backend = "cpu"\n${more}\n[model]\ndefault = "${model}"\n`;

describe('A slot as a process', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  const offline = () => service.until('primary', 'offline', (seen) => seen?.status.state === 'offline');

  const answeringProcess = async (): Promise<number> => {
    const pid = await servingProcess(service);
    if (pid === undefined) throw new Error('No process answers');
    return pid;
  };

  test('is loaded by its first requests, which wait for it', async () => {
    await service.save('primary', slotOf('demo-fox', 'load = "on-demand"\nlifecycle.idle_timeout = "1s"'));
    await offline();
    await pause(300);
    await offline();
    const answers = await Promise.all([service.chat(), service.chat(), service.chat()]);
    expect(await Promise.all(answers.map(chatText))).toEqual(Array.from({ length: 3 }, () => DEMO_SENTENCES['demo-fox']));
  }, 60_000);

  test('is unloaded when idle, and loaded again by the next request', async () => {
    await offline();
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    await offline();
  }, 60_000);

  test('counts these loads for who has asked, and none that was made by hand', async () => {
    const { usage } = JSON.parse(await (await fetch(`${service.url}/api/usage?by=token,slot`)).text());
    expect(usage).toEqual([expect.objectContaining({ caller: 'anyone', slot: 'primary', requests: 4, loads: 2, evictions: 0 })]);
    const env = { SVCCTL_SERVER: service.url };
    await svcctl(['slot', 'load', 'primary', '--wait', '--timeout', '30s'], { env });
    expect((await svcctl(['usage', '-o', 'wide'], { env })).out.split('\n')[1]).toMatch(/^anyone +4 .* 2 *$/);
    await offline();
  }, 60_000);

  test('is loaded by hand, and kept until it has been idle', async () => {
    await offline();
    const env = { SVCCTL_SERVER: service.url };
    const loaded = await svcctl(['slot', 'load', 'primary', '--wait', '--timeout', '30s'], { env });
    expect(loaded).toMatchObject({ code: 0, out: 'slot/primary loading\nslot/primary ready\n' });
    await offline();
    await service.save('primary', slotOf('demo-fox', 'enabled = false\nload = "on-demand"'));
    await service.until('primary', 'disabled', (seen) => seen?.status.conditions[0]?.reason === 'Disabled');
    expect(await svcctl(['slot', 'load', 'primary', '--wait', '--timeout', '30s'], { env })).toMatchObject({ code: 0 });
  }, 60_000);

  test('heals after its process has been killed', async () => {
    await service.save('primary', slotOf('demo-owl'));
    await service.until('primary', 'ready', isAnswering);
    const pid = await answeringProcess();
    process.kill(pid, 'SIGKILL');
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
    expect(await answeringProcess()).not.toBe(pid);
  }, 60_000);

  test('heals within 30 s after its process has been frozen, and answers the request that hung on it', async () => {
    await service.until('primary', 'ready', isAnswering);
    const pid = await answeringProcess();
    process.kill(pid, 'SIGSTOP');
    const hanging = service.chat();
    await service.until('primary', 'Ready to be unknown', (seen) =>
      (seen?.status.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'Unknown'),
    );
    expect(await chatText(await hanging)).toBe(DEMO_SENTENCES['demo-owl']);
    expect(await answeringProcess()).not.toBe(pid);
  }, 90_000);

  test('loses no request whose answer has not begun when its process is killed again and again under load', async () => {
    await service.save('primary', slotOf('demo-owl', '# Edited, so that earlier failures no longer count\npriority = 1'));
    await service.until('primary', 'ready', isAnswering);
    const lost: string[] = [];
    const rounds = [0, 0, 0, 0];
    let stopped = false;
    const clients = rounds.map(async (_, index) => {
      while (!stopped) {
        const answer = await service.chat({ stream: index % 2 === 0 });
        // A stream that has begun may be cut by the kill.
        const text = await answer.text().catch(() => 'cut');
        if (answer.status !== 200) lost.push(`${answer.status} ${text}`);
        rounds[index] = (rounds[index] ?? 0) + 1;
      }
    });
    for (let kill = 0; kill < 3; kill += 1) {
      const before = [...rounds];
      await service.until(
        'primary',
        'busy',
        (seen) => isAnswering(seen) && rounds.every((round, index) => round > (before[index] ?? 0) + 1),
      );
      process.kill(await answeringProcess(), 'SIGKILL');
    }
    const before = [...rounds];
    await service.until('primary', 'healed', () => rounds.every((round, index) => round > (before[index] ?? 0) + 1));
    stopped = true;
    await Promise.all(clients);
    expect(lost).toEqual([]);
  }, 120_000);

  test('outlives its controller, and the next one finds the same process', async () => {
    await service.until('primary', 'ready', isAnswering);
    const pid = await answeringProcess();
    await service.kill('SIGKILL');
    await service.start();
    expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-owl']);
    expect(await answeringProcess()).toBe(pid);
  }, 60_000);

  test('counts its requests in the metrics', async () => {
    await service.until('primary', 'idle', (seen) => seen?.status.state === 'idle');
    const metrics = await (await fetch(`${service.url}/api/metrics`)).text();
    expect(metrics).toMatch(/svc_requests_total\{slot="primary",route="\/v1\/chat\/completions",code="200"\} [1-9]/);
    expect(metrics).toContain('svc_slot_state{slot="primary",state="idle"} 1');
  });

  test('stays stalled over a restart of its controller after five crashes, until it is edited', async () => {
    const isStalled = (seen: SlotView | undefined): boolean =>
      (seen?.status.conditions ?? []).some(({ type, status, reason }) => type === 'Stalled' && status === 'True' && reason === 'CrashLoop');
    const before = await answeringProcess();
    await service.save('primary', slotOf('demo-owl', 'restarted_at = "2026-01-01T00:00:00Z"'));
    // Until then, the process from before the edit answers, whose crash would not count.
    await eventually('a new process answers', async () => ![undefined, before].includes(await servingProcess(service)), 60_000);
    for (let crashes = 1; crashes <= 5; crashes += 1) {
      await service.until('primary', 'ready', isAnswering);
      const pid = await answeringProcess();
      process.kill(pid, 'SIGKILL');
      await eventually('the dead process serves no longer', async () => (await servingProcess(service)) !== pid, 60_000);
    }
    await service.until('primary', 'stalled', isStalled);
    // A controller that is killed between publishing a crash and recording it lets the next one count that crash anew.
    const statusFile = join(service.dir, 'state/status/primary.json');
    await eventually('five crashes are recorded', async () => JSON.parse(await readFile(statusFile, 'utf8')).failures.length >= 5);
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      await service.kill(signal);
      await service.start();
      await service.until('primary', 'stalled', isStalled);
      expect((await service.chat()).status).toBe(503);
    }
    await service.save('primary', slotOf('demo-owl', 'restarted_at = "2026-01-02T00:00:00Z"'));
    await service.until('primary', 'ready', isAnswering);
  }, 120_000);
});
