/** Two sets of real slots that take each other's place, by hand-written files, the API and `svcctl`, while requests run. */
import { cp, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { z } from 'zod';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { startRequestLoop } from '../support/request-loop.ts';
import { chatText, isAnswering, startService, type Service } from '../support/service.ts';

const slotOf = (model: string, { more = '', alias = model } = {}) =>
  `${more}provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${model}"\naliases = ["${alias}"]\n`;
const CODER = { alias: 'coder' };
const Explained = z.object({ text: z.string() });

describe('Profiles', () => {
  let service: Service;
  beforeAll(async () => {
    service = await startService({ runtime: 'process' });
    await service.save('primary', slotOf('demo-fox', CODER));
    await service.save('embed', slotOf('demo-embed'));
    await service.save('helper', slotOf('demo-owl'));
    for (const name of ['primary', 'embed', 'helper']) await service.until(name, 'ready', isAnswering);
  }, 120_000);
  afterAll(() => service.dispose(), 60_000);

  const profile = async (...args: readonly string[]) => await svcctl(['profile', ...args], { env: { SVCCTL_SERVER: service.url } });
  const inProfiles = (...parts: readonly string[]) => path.join(service.configDir, 'profiles', ...parts);
  const ask = async (model: string): Promise<string> => {
    const answer = await service.chat({ model, max_tokens: 24 });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    return await chatText(answer);
  };

  test('exchange a whole set without losing a request, and without restarting what both sets have alike', async () => {
    expect(await profile('save', 'coding')).toMatchObject({ code: 0, out: 'profile/coding saved (embed, helper, primary)\n' });
    await mkdir(inProfiles('owls'), { recursive: true });
    await cp(path.join(service.configDir, 'slots', 'embed.toml'), inProfiles('owls', 'embed.toml'));
    await writeFile(inProfiles('owls', 'primary.toml'), slotOf('demo-owl', { more: '# at night\n' }));
    await writeFile(inProfiles('owls', 'night.toml'), slotOf('demo-owl', CODER));
    const before = await processOf('embed');

    const planned = await profile('apply', 'owls', '--dry-run');
    expect(planned.out).toContain(
      'slot/embed unchanged (dry run)\nslot/helper disabled (dry run)\nslot/night created (dry run)\nslot/primary updated (dry run)\n',
    );
    expect(await readFile(path.join(service.configDir, 'slots', 'primary.toml'), 'utf8')).toBe(slotOf('demo-fox', CODER));

    const primary = startRequestLoop(async () => ask('primary'), 3);
    // A name that belongs to another slot in each set.
    const coder = startRequestLoop(async () => ask('coder'), 2);
    const embed = startRequestLoop(embedding, 2);
    expect(await profile('apply', 'owls')).toMatchObject({ code: 0, err: '' });
    await service.until('primary', 'switched', (slot) => isAnswering(slot) && slot?.status.model === 'demo-owl');
    await service.until('night', 'ready', isAnswering);
    await service.until('helper', 'offline', (slot) => slot?.status.state === 'offline');
    expect(await activeProfiles()).toEqual(['owls']);

    expect(await profile('apply', 'coding')).toMatchObject({ code: 0, err: '' });
    await service.until('primary', 'switched back', (slot) => isAnswering(slot) && slot?.status.model === 'demo-fox');
    await service.until('helper', 'ready', isAnswering);
    await service.until('night', 'offline', (slot) => slot?.status.state === 'offline');
    await Promise.all([primary.end(), coder.end(), embed.end()]);
    expect([primary.failures, coder.failures, embed.failures]).toEqual([[], [], []]);
    expect(primary.answers).toEqual(new Set([DEMO_SENTENCES['demo-fox'], DEMO_SENTENCES['demo-owl']]));

    expect(await processOf('embed')).toEqual(before);
    expect(await activeProfiles()).toEqual(['coding']);
    expect(await readFile(path.join(service.configDir, 'slots', 'primary.toml'), 'utf8')).toBe(slotOf('demo-fox', CODER));
    expect((await readdir(path.join(service.configDir, 'slots'))).toSorted()).toEqual([
      'embed.toml',
      'helper.toml',
      'night.toml',
      'primary.toml',
    ]);
  }, 120_000);

  test('keep a restart by hand, which belongs to the slot', async () => {
    const env = { SVCCTL_SERVER: service.url };
    const before = await processOf('embed');
    expect(await svcctl(['slot', 'restart', 'embed', '--wait'], { env })).toMatchObject({ code: 0 });
    const restarted = await processOf('embed');
    expect(restarted).not.toEqual(before);
    expect(await activeProfiles()).toEqual(['coding']);
    await profile('apply', 'coding');
    await profile('apply', 'owls');
    await service.until('primary', 'switched', (slot) => isAnswering(slot) && slot?.status.model === 'demo-owl');
    expect(await processOf('embed')).toEqual(restarted);
  }, 120_000);

  test('say what a switch changed, and who did it', async () => {
    const timeline = await (await fetch(`${service.url}/api/slots/helper/timeline`)).text();
    expect(timeline).toContain('disabled the slot \\"helper\\" with the profile \\"owls\\": set enabled to false');
  });

  async function embedding(): Promise<string> {
    const answer = await fetch(`${service.url}/v1/embeddings`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'embed', input: 'the dog runs' }),
    });
    if (answer.status !== 200) throw new Error(`${answer.status}: ${await answer.text()}`);
    await answer.text();
    return 'ok';
  }

  async function activeProfiles(): Promise<readonly string[]> {
    const { out } = await profile('list', '-o', 'json');
    const { profiles }: { readonly profiles: readonly { readonly name: string; readonly active: boolean }[] } = JSON.parse(out);
    return profiles.filter(({ active }) => active).map(({ name }) => name);
  }

  /** `svcctl explain` names the workload that answers as `<name>:<pid>:<start>`. */
  async function processOf(name: string): Promise<string> {
    const { text } = Explained.parse(await (await fetch(`${service.url}/api/slots/${name}/explain`)).json());
    const workload = /served by "svc-slot-[^:"]*:(\d+:\d+)"/.exec(text)?.[1];
    if (workload === undefined) throw new Error(`No process answers:\n${text}`);
    return workload;
  }
});
