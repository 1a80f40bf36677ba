/** What the service costs before the first request: time until it listens, and memory and CPU with five ready slots. */
import { setTimeout as pause } from 'node:timers/promises';
import { atMost, median, type Row } from './measure.ts';
import { cpuSeconds, residentMb, startBenchService } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const STARTS = 7;
/** As long as several of the slowest things that the service does at rest: a pass every 15 s, and the age of its metrics. */
const REST_MS = 60_000;
const SLOTS = ['primary', 'embed', 'third', 'fourth', 'fifth'] as const;

export async function measureAtRest(): Promise<readonly Row[]> {
  const starts: number[] = [];
  for (let run = 0; run <= STARTS; run += 1) {
    const service = await startBenchService({ SVC_RUNTIME: 'process' });
    // The first run fills the compile cache.
    if (run > 0) starts.push(service.listeningMs / 1000);
    await service.stop();
  }
  const service = await startBenchService({ SVC_RUNTIME: 'process' });
  for (const slot of SLOTS) await service.save(slot, slotText(slot));
  let slots: readonly { readonly ready: boolean }[] = [];
  const allReady = async (): Promise<boolean> => {
    slots = await service.status();
    return slots.length === SLOTS.length && slots.every((slot) => slot.ready);
  };
  await waitUntil(allReady, { withinMs: 180_000, everyMs: 200, failure: () => `The slots did not become ready: ${JSON.stringify(slots)}` });
  await pause(5000);
  const before = await cpuSeconds(service.pid);
  await pause(REST_MS);
  const cpuPercent = ((await cpuSeconds(service.pid)) - before) / (REST_MS / 100_000);
  const memoryMb = await residentMb(service.pid);
  await service.stop();
  return [
    atMost('svcctl serve: start to listening, median', median(starts), { limit: 0.8, unit: 's' }),
    atMost('memory at rest, five slots', memoryMb, { limit: 120, unit: 'MB', digits: 1 }),
    atMost(`CPU at rest for ${REST_MS / 1000} s, five slots`, cpuPercent, { limit: 1, unit: '% of a core' }),
  ];
}

function slotText(slot: string): string {
  return `provider = "gguf"\nbackend = "cpu"\n[model]\ndefault = "${slot === 'embed' ? 'demo-embed' : 'demo-fox'}"\n`;
}
