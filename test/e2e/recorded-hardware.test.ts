/** The real service with a recording of another machine in the place of this one. */
import { afterEach, expect, test } from '@jest/globals';
import { recordingFile, type RecordedMachine } from '../support/hardware/recorded-machines.ts';
import { eventually } from '../support/eventually.ts';
import { startService, type Service } from '../support/service.ts';

let service: Service | undefined;
afterEach(async () => {
  await service?.dispose();
  service = undefined;
});

const serviceOn = async (machine: RecordedMachine): Promise<Service> => {
  service = await startService({ runtime: 'process', environment: { SVC_HARDWARE_FILE: recordingFile(machine) } });
  return service;
};

test('slots are planned for the devices and the memory of the recording', async () => {
  const { url, save, until } = await serviceOn('intel-graphics-and-nouveau');
  await save('card', 'provider = "gguf"\nbackend = "cuda"\n[model]\ndefault = "demo-fox"\n');
  await save('large', 'provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n[resources]\nmemory = "30Gi"\n');
  const stalled = (type: string) => (slot: Awaited<ReturnType<Service['slot']>>) =>
    slot?.status.conditions.some(
      (condition) => condition.status === 'True' && condition.type === 'Stalled' && condition.reason === type,
    ) === true;
  const card = await until('card', 'is refused', stalled('DeviceMissing'));
  expect(card.status.conditions.find(({ type }) => type === 'Stalled')?.message).toBe(
    'Backend "cuda" is not available here, because the GPU uses the driver "nouveau" instead of "nvidia" (gpu1: GeForce GTX 1060 6GB); set "backend" to "vulkan" or "cpu"',
  );
  // 90 % of the 31 GiB that were recorded, whatever this machine has.
  const isJudged = (slot: Awaited<ReturnType<Service['slot']>>) => slot?.status.conditions.some(({ reason }) => reason !== 'NotYetSeen');
  const large = await until('large', 'does not fit', (slot) => slot?.status.state === 'offline' && isJudged(slot) === true);
  expect(JSON.stringify(large.status.conditions)).toContain('28.0 GiB');
  const hardware = await (await fetch(`${url}/api/hardware`)).json();
  expect(hardware).toMatchObject({ source: 'recording', recording: { file: recordingFile('intel-graphics-and-nouveau') } });
  expect(await (await fetch(`${url}/api/status`)).json()).toMatchObject({ hardware_source: 'recording' });
});

test('a slot without a backend gets the best one that the recorded machine can run', async () => {
  const { url, save } = await serviceOn('rtx-3090-and-4090');
  await save('primary', '[model]\ndefault = "demo-fox"\n');
  const explained = async (): Promise<string> => (await fetch(`${url}/api/slots/primary/explain`)).text();
  await eventually('the choice is explained', async () => (await explained()).includes('backend: '), 30_000);
  expect(JSON.parse(await explained()).text).toContain('backend: "cuda", as the default "vulkan" is not available here');
});
