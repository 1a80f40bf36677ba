/**
 * The real service reads the file of the next model while the real llama-server finishes a request, and says so: as a process and in a container. The server is stopped
 * meanwhile, so that nothing but the service can have read the file.
 */
import { execFileSync } from 'node:child_process';
import { createReadStream, readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { writeLargeModel } from '../../bench/large-model.ts';
import { denseModel } from '../../bench/large-shapes.ts';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodmanSlots, GGUF_TOOLBOX, PODMAN } from '../support/require/require-podman.ts';
import { isAnswering, servingProcess, startService, type Service } from '../support/service.ts';

/** Temporary files may be in memory, where nothing is to be read ahead. */
const ON_DISK = '/var/tmp';
const slotOf = (model: string): string => `backend = "cpu"\n[model]\ndefault = "${model}"\n[lifecycle]\nswap = "drain"\n`;
const RUNTIMES = {
  process: {
    start: async () =>
      startService({
        runtime: 'process',
        above: ON_DISK,
        environment: { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` },
      }),
    serverOf: async (service: Service) => (await servingProcess(service)) ?? 0,
  },
  podman: {
    start: async () => startService({ runtime: 'podman', above: ON_DISK, toolboxes: GGUF_TOOLBOX }),
    serverOf: async (service: Service) => {
      const container = /served by "([^"]+)"/.exec(await explain(service))?.[1] ?? '';
      return Number(execFileSync('podman', [...PODMAN, 'inspect', '--format', '{{.State.Pid}}', container], { encoding: 'utf8' }));
    },
  },
} as const;
const NAME = 'large.gguf';
/** The kernel reads the first part of it ahead when the service reads its header, and no more. */
const MODEL = denseModel({
  layers: 8,
  width: 512,
  heads: 8,
  headsKv: 8,
  headLength: 64,
  feedForward: 2048,
  vocabulary: 20_000,
  context: 512,
  format: 'q8_0',
});

for (const [runtime, { start, serverOf }] of Object.entries(RUNTIMES)) {
  describeWithPodmanSlots(`The model of a swap, with the runtime "${runtime}",`, () => {
    let service: Service;
    let file: string;
    let sizeBytes: number;
    beforeAll(async () => {
      service = await start();
      file = path.join(service.modelsDir, NAME);
      sizeBytes = await writeLargeModel(file, MODEL);
    }, 120_000);
    afterAll(() => service?.dispose(), 60_000);

    test('is in memory before the other one has answered its last request', async () => {
      await service.save('primary', slotOf('demo-fox'));
      await service.until('primary', 'ready', isAnswering);
      const server = await serverOf(service);
      expect(server).toBeGreaterThan(0);
      process.kill(server, 'SIGSTOP');
      const answer = service.chat({ model: 'primary' });
      await service.until('primary', 'serving', (slot) => slot?.status.state === 'serving');
      execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' });
      await service.save('primary', slotOf(NAME));
      const isRead = async (): Promise<boolean> =>
        / model file (?:read ahead|in memory already): (.+?) of \1, large\.gguf/.test(await explain(service));
      await eventually('the model is read', isRead, 30_000);
      expect(await fromDisk(file)).toBeLessThan(sizeBytes / 100);
      process.kill(server, 'SIGCONT');
      expect((await answer).status).toBe(200);
      await service.until('primary', 'serving the other model', (slot) => slot?.status.model === NAME && isAnswering(slot));
      expect(await explain(service)).toContain(' model file read ahead: ');
      // The kernel may not have dropped all pages of a file that was just written.
      const metrics = await (await fetch(`${service.url}/api/metrics`)).text();
      expect(Number(/^svc_read_ahead_bytes_total (\d+)/m.exec(metrics)?.[1])).toBeGreaterThan(sizeBytes / 2);
    }, 180_000);
  });
}

const explain = async ({ url }: Service): Promise<string> => {
  const { text }: { text: string } = JSON.parse(await (await fetch(`${url}/api/slots/primary/explain`)).text());
  return text;
};

/** Reads the file, and returns how many bytes of it came from the disk: none if it was in the page cache. */
async function fromDisk(file: string): Promise<number> {
  const count = (): number => Number(/^read_bytes: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);
  const before = count();
  for await (const _ of createReadStream(file, { highWaterMark: 2 ** 20 })) continue;
  return count() - before;
}
