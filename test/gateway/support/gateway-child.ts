/** A gateway in its own process, so that its memory can be measured. Over IPC it sends its port, obeys "open" and "park", tells what buffers it holds on "buffers", and collects garbage and measures on any other message. */
import { publish, PARK } from './board-fixture.ts';
import { startGateway } from './gateway-fixture.ts';

const [upstreamPort = '0', settings = '{}'] = process.argv.slice(2);
const parsed: unknown = JSON.parse(settings);
const fixture = await startGateway({
  settings: Object.fromEntries(Object.entries(Object(parsed)).map(([key, value]) => [key, String(value)])),
});

const SLOT = { name: 'primary', capabilities: ['chat', 'transcription'] } as const;

function measure(): void {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
  const { rss, heapUsed, arrayBuffers, external } = process.memoryUsage();
  process.send?.({ kind: 'memory', residentBytes: rss, bytes: heapUsed + Math.max(arrayBuffers, external), ...fixture.gateway.load() });
}

process.on('message', (command) => {
  if (command === 'open') publish(fixture.board, { ...SLOT, targets: [{ workload: 'w', port: Number(upstreamPort) }] });
  else if (command === 'park') publish(fixture.board, { ...SLOT, admission: PARK });
  else if (command === 'buffers') process.send?.({ kind: 'buffers', bytes: process.memoryUsage().arrayBuffers });
  else measure();
});
process.on('disconnect', () => process.exit(0));
process.send?.({ kind: 'port', port: fixture.port });
