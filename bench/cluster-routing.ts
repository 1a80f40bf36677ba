/** Compares the gateway with ten and with two thousand slots on the board, each with requests for ten of its slots. */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { drive, type Started } from './load.ts';
import { startNode } from './proxies.ts';
import { atLeast, median, type Row } from './measure.ts';

const ROUNDS = 9;
const CONNECTIONS = 32;
const FEW = 10;

export async function measureRouting(many: number): Promise<Row> {
  const what = `routing: requests/s with ${many} slots on the board, compared with ${FEW}`;
  const row = (ratio: number | string): Row => atLeast(what, ratio, { limit: 0.95, unit: '×' });
  if (spawnSync('wrk', ['-v']).error !== undefined) return row('needs wrk');
  const directory = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const started: ChildProcess[] = [];
  try {
    const upstream = await startNode({ started }, 'upstream.ts', []);
    const open = async (slots: number) => ({
      server: await startNode({ started }, 'gateway-process.ts', [String(upstream.port), String(slots)]),
      script: await writeScript(directory, slots),
    });
    const ratio = await compare(await open(FEW), await open(many));
    process.stdout.write(`  CPU per request with ${many} slots, compared with ${FEW}: ${ratio.cpu.toFixed(2)} ×\n`);
    return row(ratio.throughput);
  } finally {
    for (const child of started) child.kill('SIGKILL');
    await rm(directory, { recursive: true, force: true });
  }
}

interface Gateway {
  readonly server: Started;
  readonly script: string;
}

/** Returns the medians of `many` divided by `few`. The order alternates from round to round. */
async function compare(few: Gateway, many: Gateway): Promise<{ readonly throughput: number; readonly cpu: number }> {
  const run = async ({ server, script }: Gateway) => await drive(server, { script, connections: CONNECTIONS });
  await run(few);
  await run(many);
  const throughput: number[] = [];
  const cpu: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const first = await run(round % 2 === 0 ? few : many);
    const second = await run(round % 2 === 0 ? many : few);
    const [a, b] = round % 2 === 0 ? [first, second] : [second, first];
    throughput.push(b.requestsPerSecond / a.requestsPerSecond);
    cpu.push(b.cpu / a.cpu);
  }
  return { throughput: median(throughput), cpu: median(cpu) };
}

async function writeScript(directory: string, slots: number): Promise<string> {
  const file = join(directory, `slots-${slots}.lua`);
  const distance = slots / FEW;
  const body = JSON.stringify({ model: 'MODEL', messages: [{ role: 'user', content: 'z'.repeat(530) }] });
  const [head, tail] = body.split('MODEL');
  await writeFile(
    file,
    `wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
local requests, turn = {}, 0
function init()
  for index = 1, ${FEW} do
    local slot = (index - 1) * ${distance}
    requests[index] = wrk.format(nil, nil, nil, '${head}' .. (slot == 0 and "primary" or "slot-" .. slot) .. '${tail}')
  end
end
function request()
  turn = turn % ${FEW} + 1
  return requests[turn]
end
`,
  );
  return file;
}
