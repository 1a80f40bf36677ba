/** Clients that ask one slot without a pause while something breaks, and what became of each request. */
import { pause, type Service } from '../../support/service.ts';

/**
 * What became of the requests. A request is lost unless it was answered in full, refused for a reason that the case expects, or ended because its own
 * connection or its server died after the answer had begun.
 */
export interface Score {
  requests: number;
  answered: number;
  /** The answer had begun, and its server died. */
  cut: number;
  /** The client's connection to the service died, or the service did not listen. */
  disconnected: number;
  /** `<status> <code>` → count. */
  readonly refused: Map<string, number>;
  /** The longest time that an answered request took, in milliseconds. */
  slowestMs: number;
  /** One line for each answer that was wrong. */
  readonly wrong: string[];
}

export interface LoadOptions {
  readonly slots: readonly string[];
  readonly sentences: readonly string[];
  /** Number of clients; half of them stream. Default 4. */
  readonly clients?: number;
}

export interface Load {
  readonly score: Score;
  /** Ends after the present requests. */
  end(): Promise<Score>;
}

/** No case keeps a request waiting for longer. */
const ANSWERED_WITHIN_MS = 120_000;
/** After a refusal: a client without a pause would only measure how fast refusals are. */
const ASK_AGAIN_MS = 50;

export function startLoad(service: Service, { slots, sentences, clients = 4 }: LoadOptions): Load {
  const score: Score = { requests: 0, answered: 0, cut: 0, disconnected: 0, refused: new Map(), slowestMs: 0, wrong: [] };
  let running = true;
  const loops = Array.from({ length: clients }, async (_, client) => {
    const known = new Set(sentences);
    for (let turn = client; running; turn += 1) {
      score.requests += 1;
      const slot = slots[turn % slots.length] ?? 'primary';
      await (client % 2 === 0 ? askWhole(service, slot, known, score) : askStream(service, slot, known, score));
      await pause(5);
    }
  });
  return {
    score,
    async end() {
      running = false;
      await Promise.all(loops);
      return score;
    },
  };
}

export function refusals({ refused }: Score): readonly string[] {
  return [...refused.keys()].toSorted();
}

async function askWhole(service: Service, slot: string, known: ReadonlySet<string>, score: Score): Promise<void> {
  const startedAt = performance.now();
  const answer = await ask(service, { model: slot }, score);
  if (answer === undefined) return;
  const text = await answer.text().catch(() => undefined);
  if (text === undefined) return void (score.cut += 1);
  const body: { choices?: { message?: { content?: string } }[] } = JSON.parse(text);
  count(score, body.choices?.[0]?.message?.content ?? '', known, startedAt);
}

async function askStream(service: Service, slot: string, known: ReadonlySet<string>, score: Score): Promise<void> {
  const startedAt = performance.now();
  const answer = await ask(service, { model: slot, stream: true }, score);
  if (answer === undefined) return;
  const text = await answer.text().catch(() => '');
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  if (events.at(-1) !== 'data: [DONE]') return void (score.cut += 1);
  const deltas = events.slice(0, -1).map((line) => {
    const chunk: { choices?: { delta?: { content?: string | null } }[] } = JSON.parse(line.slice('data: '.length));
    return chunk.choices?.[0]?.delta?.content ?? '';
  });
  count(score, deltas.join(''), known, startedAt);
}

/** Returns an answer with status 200, or counts what came instead. */
async function ask(service: Service, body: object, score: Score): Promise<Response | undefined> {
  const answer = await service.chat(body, AbortSignal.timeout(ANSWERED_WITHIN_MS)).catch((error: unknown) => String(error));
  if (typeof answer === 'string') {
    if (answer.includes('Timeout')) score.wrong.push(`no answer within ${ANSWERED_WITHIN_MS / 1000} s`);
    else score.disconnected += 1;
    await pause(ASK_AGAIN_MS);
    return undefined;
  }
  if (answer.status === 200) return answer;
  const text = await answer.text().catch(() => '');
  const reason = `${answer.status} ${/"code":"([^"]+)"/.exec(text)?.[1] ?? text.slice(0, 80)}`;
  score.refused.set(reason, (score.refused.get(reason) ?? 0) + 1);
  await pause(ASK_AGAIN_MS);
  return undefined;
}

function count(score: Score, text: string, known: ReadonlySet<string>, startedAt: number): void {
  if (!known.has(text.trim())) return void score.wrong.push(`unexpected text "${text.slice(0, 80)}"`);
  score.answered += 1;
  score.slowestMs = Math.max(score.slowestMs, performance.now() - startedAt);
}
