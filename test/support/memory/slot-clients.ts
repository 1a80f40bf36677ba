/** Clients that ask one slot again and again, and keep what became of each request: also those that stream for longer than a slot has its turn. */
import { pause, type Service } from '../service.ts';
import { sentenceOfSlot, type SizedSlot } from './sized-models.ts';

export interface SentRequest {
  readonly slot: string;
  /** Wall-clock milliseconds, as the timeline has them. */
  readonly sentAt: number;
  /** Undefined while it is not answered. */
  answeredAt: number | undefined;
  /** What was wrong with its answer; undefined for one that is complete and right. */
  problem: string | undefined;
}

export interface SlotClients {
  readonly requests: readonly SentRequest[];
  /** Ends after the present requests. */
  end(): Promise<void>;
}

const SHORT_TOKENS = 12;
/** More than a server generates in its shortest turn of a second. */
const LONG_TOKENS = 150;
const LONGEST_PAUSE_MS = 400;
/** Only so that a request that is lost does not end the test without a message. */
const LOST_AFTER_MS = 240_000;

/** Two clients for each slot. One streams; to slots without an end, it streams long answers. */
export function startSlotClients(service: Service, slots: readonly SizedSlot[]): SlotClients {
  const requests: SentRequest[] = [];
  let running = true;
  const loops = slots.flatMap((slot) =>
    [false, true].map(async (stream) => {
      while (running) {
        const request: SentRequest = { slot: slot.name, sentAt: Date.now(), answeredAt: undefined, problem: undefined };
        requests.push(request);
        request.problem = await ask(service, slot, stream).catch((error: unknown) => `Its answer was cut: ${String(error)}`);
        request.answeredAt = Date.now();
        await pause(Math.random() * LONGEST_PAUSE_MS);
      }
    }),
  );
  return {
    requests,
    async end() {
      running = false;
      await Promise.all(loops);
    },
  };
}

async function ask(service: Service, slot: SizedSlot, stream: boolean): Promise<string | undefined> {
  const tokens = stream && slot.endless ? LONG_TOKENS : SHORT_TOKENS;
  const body = { model: slot.name, stream, ...(slot.endless ? { max_tokens: tokens } : {}) };
  const answer = await service.chat(body, AbortSignal.timeout(LOST_AFTER_MS));
  const text = await answer.text();
  if (answer.status !== 200) return `It was answered with ${answer.status}: ${text.slice(0, 200)}`;
  const { content, reason } = stream ? readStream(text) : readWhole(text);
  if (reason !== (slot.endless ? 'length' : 'stop')) return `Its answer ended with the reason "${reason}"`;
  const said = content.trim();
  const expected = sentenceOfSlot(slot);
  const isRight = slot.endless ? said.startsWith(expected) && said.split(' ').length >= tokens - 1 : said === expected;
  return isRight ? undefined : `Its answer was "${said.slice(0, 80)}"`;
}

interface Said {
  readonly content: string;
  readonly reason: string;
}

function readWhole(text: string): Said {
  const body: { choices: { message: { content: string }; finish_reason: string }[] } = JSON.parse(text);
  return { content: body.choices[0]?.message.content ?? '', reason: body.choices[0]?.finish_reason ?? 'none' };
}

function readStream(text: string): Said {
  const events = text.split('\n').filter((line) => line.startsWith('data: '));
  if (events.at(-1) !== 'data: [DONE]') return { content: '', reason: 'a cut stream' };
  const choices = events.slice(0, -1).flatMap((line) => {
    const chunk: { choices?: { delta?: { content?: string | null }; finish_reason?: string | null }[] } = JSON.parse(
      line.slice('data: '.length),
    );
    return chunk.choices ?? [];
  });
  const content = choices.map(({ delta }) => delta?.content ?? '').join('');
  return { content, reason: choices.map(({ finish_reason: reason }) => reason ?? '').join('') };
}
