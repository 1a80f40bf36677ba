/** Clients that stream one answer after another and count failed and truncated ones. */
import { pause, type Service } from '../service.ts';

export interface StreamLoop {
  /** Ends the loop after its present requests, and returns the score. */
  end(): Promise<Score>;
  readonly score: Score;
}

export interface Score {
  requests: number;
  /** One line for each failed or truncated request. */
  readonly failures: string[];
  /** Sentence → count. */
  readonly texts: Map<string, number>;
}

/** Runs `clients` loops. Each answer must be a complete stream: text, a finish reason, `[DONE]`. */
export function startStreamLoop(service: Pick<Service, 'chat'>, clients = 2): StreamLoop {
  const score: Score = { requests: 0, failures: [], texts: new Map() };
  let running = true;
  const loops = Array.from({ length: clients }, async () => {
    while (running) {
      score.requests += 1;
      const outcome = await oneStream(service).catch((error: unknown) => ({ failure: String(error) }));
      if ('failure' in outcome) score.failures.push(outcome.failure);
      else score.texts.set(outcome.text, (score.texts.get(outcome.text) ?? 0) + 1);
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

async function oneStream(service: Pick<Service, 'chat'>): Promise<{ readonly text: string } | { readonly failure: string }> {
  const answer = await service.chat({ stream: true });
  const body = await answer.text();
  if (answer.status !== 200) return { failure: `${answer.status} ${body}` };
  const data = body.split('\n').filter((line) => line.startsWith('data: '));
  if (data.at(-1) !== 'data: [DONE]') return { failure: `cut after ${data.length} events: ${data.at(-1) ?? 'nothing'}` };
  let text = '';
  let finished = false;
  for (const line of data.slice(0, -1)) {
    const chunk: { error?: unknown; choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[] } = JSON.parse(
      line.slice(6),
    );
    if (chunk.error !== undefined) return { failure: `error event ${line}` };
    text += chunk.choices?.[0]?.delta?.content ?? '';
    finished ||= typeof chunk.choices?.[0]?.finish_reason === 'string';
  }
  return finished ? { text: text.trim() } : { failure: 'no finish reason' };
}
