/**
 * What a conversation costs after a swap to another model and back: the real llama-server as a process, with a generated model and a prompt of about 4,000 tokens, with prompts
 * kept and not. Both take turns. The time to the first token begins when the slot is ready again. Needs llama-server on the PATH.
 */
import { mkdir, mkdtemp, rename, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { encodeDemoModel } from '../toolboxes/demo/demo-models.ts';
import { findProgram } from '../src/providers/host-program.ts';
import { writeLargeModel } from './large-model.ts';
import { denseModel } from './large-shapes.ts';
import { atMost, median, type Row } from './measure.ts';
import { startServiceProcess, type ServiceProcess } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

const ROUNDS = Number(process.env['SVC_BENCH_ROUNDS'] ?? 3);
const WITHIN_MS = 120_000;
const MODEL = denseModel({
  layers: 8,
  width: 1024,
  heads: 16,
  headsKv: 4,
  headLength: 64,
  feedForward: 4096,
  vocabulary: 120_000,
  context: 16_384,
  format: 'q8_0',
});
/** Digits are tokens of their own in the generated vocabulary. */
const PROMPT = Array.from({ length: 3950 }, (_, index) => index % 10).join('');

interface Round {
  readonly firstTokenMs: number;
  readonly readyMs: number;
  readonly computed: number;
}

export async function measureSwap(): Promise<readonly Row[]> {
  const title = 'first token after a swap back, prompts kept against computed again';
  if ((await findProgram('llama-server', process.env['PATH'])) === undefined)
    return [atMost(title, 'needs llama-server', { limit: 0.1, unit: '×' })];
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-swap-'));
  const modelsDir = path.join(dir, 'models');
  await mkdir(path.join(dir, 'config/slots'), { recursive: true });
  await mkdir(modelsDir);
  await writeLargeModel(path.join(modelsDir, 'large.gguf'), MODEL);
  await writeFile(path.join(modelsDir, 'other.gguf'), encodeDemoModel('demo-owl'));
  const service = await startServiceProcess({
    dir,
    startMs: 60_000,
    env: {
      SVC_RUNTIME: 'process',
      SVC_ON_EXIT: 'stop',
      SVC_LOG_LEVEL: 'error',
      SVC_CONFIG_DIR: path.join(dir, 'config'),
      SVC_STATE_DIR: path.join(dir, 'state'),
      SVC_MODELS_DIR: modelsDir,
    },
  });
  try {
    const rounds: Record<'kept' | 'computed', Round[]> = { kept: [], computed: [] };
    for (let round = 0; round < ROUNDS; round += 1) {
      rounds.kept.push(await swapAndBack(service, dir, true));
      rounds.computed.push(await swapAndBack(service, dir, false));
    }
    const of = (which: keyof typeof rounds, what: keyof Round): number => median(rounds[which].map((each) => each[what]));
    return [
      atMost(title, of('kept', 'firstTokenMs') / of('computed', 'firstTokenMs'), { limit: 0.1, unit: '×' }),
      atMost('first token after a swap back, prompts kept', of('kept', 'firstTokenMs'), { limit: 300, unit: 'ms' }),
      atMost('ready after a swap back, prompts kept against not', of('kept', 'readyMs') / of('computed', 'readyMs'), {
        limit: 1.5,
        unit: '×',
      }),
      atMost('tokens computed of the prompt, prompts kept', of('kept', 'computed'), { limit: 100, unit: 'tokens' }),
    ];
  } finally {
    await service.stop();
  }
}

async function swapAndBack(service: ServiceProcess, dir: string, keeps: boolean): Promise<Round> {
  await serve(service, dir, 'large.gguf', keeps);
  await ask(service);
  await serve(service, dir, 'other.gguf', keeps);
  const readyMs = await serve(service, dir, 'large.gguf', keeps);
  return { readyMs, ...(await ask(service)) };
}

/** Returns how long the swap took. */
async function serve({ url }: ServiceProcess, dir: string, model: string, keeps: boolean): Promise<number> {
  const file = path.join(dir, 'config/slots/primary.toml');
  const lifecycle = `lifecycle = { swap = "drain", keep_prompts = ${keeps} }`;
  await writeFile(
    `${file}.new`,
    `backend = "cpu"\n${lifecycle}\n[model]\ndefault = "${model}"\nargs = ["--ctx-size", "8192", "--parallel", "1"]\n`,
  );
  const from = performance.now();
  await rename(`${file}.new`, file);
  let seen = '';
  const isUp = async (): Promise<boolean> => {
    seen = await (await fetch(`${url}/api/slots/primary`)).text();
    const { status } = JSON.parse(seen);
    return (
      status?.model === model &&
      status.conditions.some((each: { type: string; status: string }) => each.type === 'UpToDate' && each.status === 'True')
    );
  };
  await waitUntil(async () => isUp().catch(() => false), {
    withinMs: WITHIN_MS,
    everyMs: 5,
    failure: () => `The slot does not serve "${model}": ${seen}`,
  });
  return performance.now() - from;
}

async function ask({ url }: ServiceProcess): Promise<Omit<Round, 'readyMs'>> {
  const from = performance.now();
  const answer = await fetch(`${url}/v1/completions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'primary', prompt: PROMPT, max_tokens: 2, temperature: 0, stream: true }),
  });
  let text = '';
  let firstTokenMs: number | undefined;
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString();
    if (/"text":"./.test(text)) firstTokenMs ??= performance.now() - from;
  }
  const computed = /"prompt_n":(\d+)/.exec(text)?.[1];
  if (firstTokenMs === undefined || computed === undefined) throw new Error(`An unexpected answer: ${text.slice(0, 500)}`);
  return { firstTokenMs, computed: Number(computed) };
}
