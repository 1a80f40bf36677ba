/** The real service reads the file of the next model while the real llama-server finishes a request, and says so. */
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { directoryOfLlamaServer } from '../support/llama-server.ts';
import { describeWithPodman } from '../support/require/require-podman.ts';
import { isAnswering, servingProcess, startService, type Service } from '../support/service.ts';

const slotOf = (model: string): string => `backend = "cpu"\n[model]\ndefault = "${model}"\n[lifecycle]\nswap = "drain"\n`;

describeWithPodman('The model of a swap', () => {
  let service: Service;
  beforeAll(async () => {
    const environment = { PATH: `${await directoryOfLlamaServer()}:${process.env['PATH'] ?? ''}` };
    service = await startService({ runtime: 'process', environment });
  }, 120_000);
  afterAll(() => service?.dispose(), 60_000);

  test('is read while the last request of the other one is answered', async () => {
    await service.save('primary', slotOf('demo-fox'));
    await service.until('primary', 'ready', isAnswering);
    const file = path.join(service.modelsDir, 'demo/demo-owl.gguf');
    execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc,fdatasync', 'count=0'], { stdio: 'ignore' });
    const server = (await servingProcess(service)) ?? 0;
    process.kill(server, 'SIGSTOP');
    const answer = service.chat({ model: 'primary' });
    await service.until('primary', 'serving', (slot) => slot?.status.state === 'serving');
    await service.save('primary', slotOf('demo-owl'));
    const explain = async (): Promise<string> => (await fetch(`${service.url}/api/slots/primary/explain`)).text();
    await eventually('the model is read', async () => / model file (?:read ahead|in memory already): /.test(await explain()), 30_000);
    process.kill(server, 'SIGCONT');
    expect((await answer).status).toBe(200);
    await service.until('primary', 'serving the other model', (slot) => slot?.status.model === 'demo-owl' && isAnswering(slot));
    expect(await explain()).toMatch(/ model file (?:read ahead|in memory already): (.+?) of \1, demo-owl/);
    // What came from the disk is counted, and what was in memory already is not.
    const metrics = await (await fetch(`${service.url}/api/metrics`)).text();
    expect(/^svc_read_ahead_bytes_total [1-9]/m.test(metrics)).toBe((await explain()).includes(' model file read ahead: '));
  }, 120_000);
});
