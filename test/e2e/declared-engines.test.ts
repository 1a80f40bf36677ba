/** Engines that files declare, with the real llama-server: as a process, and on podman in the toolbox image. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots } from '../support/require/require-podman.ts';
import { chatText, condition, isAnswering, startService, type Service } from '../support/service.ts';

const SHIPPED = path.resolve('engines/llama-server.toml');
const IMAGE = 'localhost/svc-toolbox-gguf-cpu:v1';
const slotOf = (engine: string, more = '') =>
  `provider = "${engine}"\nbackend = "cpu"\n${more}[model]\ndefault = "demo-fox"\nargs = ["--threads", "1"]\n`;

for (const runtime of ['process', 'podman'] as const)
  describeWithPodmanSlots(`The real llama-server as a declared engine in the runtime "${runtime}"`, () => {
    let service: Service;
    let engines = '';
    let definition = '';

    beforeAll(async () => {
      // Worker processes learn a definition with the slots that use it.
      const environment =
        runtime === 'process' ? { SVC_WORKERS: '2', PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` } : {};
      service = await startService({ runtime, environment });
      engines = path.join(service.configDir, 'engines');
      await mkdir(engines, { recursive: true });
      const image = `image = { cpu = "${IMAGE}" }\n`;
      definition = `${runtime === 'podman' ? image : ''}${await readFile(SHIPPED, 'utf8')}`;
    }, 120_000);
    afterAll(async () => await service.dispose(), 60_000);

    const save = async (name: string, text: string): Promise<void> => await writeFile(path.join(engines, `${name}.toml`), text);

    test('holds up a slot whose engine nothing declares, with the file that is missing', async () => {
      await service.save('primary', slotOf('my-llama'));
      const slot = await service.until('primary', 'Stalled=True', (seen) => condition(seen, 'Stalled')?.status === 'True');
      expect(condition(slot, 'SpecValid')?.status).toBe('True');
      expect(condition(slot, 'Stalled')).toMatchObject({
        reason: 'ProviderMissing',
        message: expect.stringContaining('There is no engine named "my-llama"; declare it in "engines/my-llama.toml"'),
      });
    }, 60_000);

    test('serves the slot once the file is there, and lists the engine like a built-in provider', async () => {
      await save('my-llama', definition);
      await service.until('primary', 'ready', isAnswering);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
      const { providers } = JSON.parse(await (await fetch(`${service.url}/api/providers`)).text());
      expect(providers).toContainEqual(
        expect.objectContaining({
          kind: 'my-llama',
          serves: ['chat', 'completion'],
          availability: expect.arrayContaining([{ backend: 'cpu', available: true, reason: '' }]),
        }),
      );
    }, 120_000);

    test('keeps serving with the last good definition when the file is broken, and when it is deleted', async () => {
      const before = await service.until('primary', 'ready', isAnswering);
      await save('my-llama', `${definition.replace('"{port}"', '"{prot}"')}`);
      const broken = await service.until('primary', 'SpecValid=False', (seen) => condition(seen, 'SpecValid')?.status === 'False');
      expect(condition(broken, 'SpecValid')?.message).toMatch(
        /my-llama\.toml:\d+:\d+.*Unknown placeholder "\{prot\}"; did you mean "\{port\}"\?; the last good definition stays in force/,
      );
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
      await rm(path.join(engines, 'my-llama.toml'));
      await service.until('primary', 'missing file', (seen) =>
        /This file of an engine is missing/.test(condition(seen, 'SpecValid')?.message ?? ''),
      );
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
      await save('my-llama', definition);
      const after = await service.until('primary', 'SpecValid=True', (seen) => condition(seen, 'SpecValid')?.status === 'True');
      expect(after.status.restarts).toBe(before.status.restarts);
    }, 120_000);

    test('replaces the server when its command is edited', async () => {
      const before = await service.until('primary', 'ready', isAnswering);
      await save('my-llama', definition.replace('"--no-ui"', '"--no-ui", "--parallel", "1"'));
      await service.until('primary', 'the new server', (seen) => isAnswering(seen) && seen?.status.endpoint !== before.status.endpoint);
      expect(await chatText(await service.chat())).toBe(DEMO_SENTENCES['demo-fox']);
    }, 120_000);
  });
