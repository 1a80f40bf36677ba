/**
 * Says why a request was slow: what took the largest part of its time.
 *
 *   arrival ── parked ──► open ── server ──► first byte ── output ──► end
 *              1, 2, 3, 4          4, 5, 6                 7, 8
 *
 *   1  fallback   it was with another slot first
 *   2  memory     the load began late, because memory was not free
 *   3  load       it waited for the load of its slot
 *   4  queue      it waited for its turn at a full slot, or the server answered earlier requests first
 *   5  prompt     the server read a long prompt
 *   6  server     the server was late for a reason that the gateway does not see
 *   7  client     the client read the answer slowly
 *   8  output     the server wrote the answer slowly, or the answer is long
 *
 * Answers that are not streamed have no first byte: their time with the server is 5 if the prompt dominates, else 8.
 * Pure.
 */
import type { FinishedRequest } from '../../../gateway/exchange-deps.ts';
import type { SlowCause } from '../../../schema/status/slot-lists.ts';
import { ANSWERING_STATES, type SlotState, type TimelineEntry } from '../../../schema/status/slot-status.ts';

export interface WhySlow {
  readonly cause: SlowCause;
  readonly message: string;
}

/** A request, and Unix milliseconds of its end. */
export interface EndedRequest {
  readonly finished: FinishedRequest;
  readonly at: number;
}

export interface SlowFacts {
  /** The timeline of its slot, oldest first. */
  readonly entries: readonly Pick<TimelineEntry, 'at' | 'to' | 'cause'>[];
  /** Requests of the same slot; others are ignored. */
  readonly others: readonly EndedRequest[];
}

/** Users notice a delay from here on. https://www.nngroup.com/articles/response-times-3-important-limits/ */
const NOTICED_SECONDS = 1;
/** Nobody reads faster than about 5 words a second. */
const READABLE_PER_SECOND = 10;
/** Shorter prompts take less than a second on most machines. */
const LONG_PROMPT_TOKENS = 1000;
/** Servers read prompts at least that many times faster than they write. */
const PROMPT_SPEEDUP = 10;

const LOADING: ReadonlySet<SlotState | undefined> = new Set(['pulling', 'starting', 'warming']);
const MEMORY_REASON = /^(?:InsufficientMemory|MemoryNotFree)\b/;

export function explainSlow(request: EndedRequest, facts: SlowFacts): WhySlow | undefined {
  const parts = partsOf(request.finished);
  const largest = Math.max(...Object.values(parts));
  if (largest < NOTICED_SECONDS) return undefined;
  if (parts.parked === largest) return explainWait(request, facts);
  if (parts.server === largest) return explainStart(request, facts, largest);
  if (parts.client === largest) return { cause: 'client', message: `The client left the answer unread for ${secondsText(largest)}` };
  return explainOutput(request.finished, largest);
}

/** Seconds. */
function partsOf({ seconds, parkedSeconds: parked = 0, ttftSeconds, blockedSeconds: blocked = 0, tokens }: FinishedRequest) {
  const begunAfter = ttftSeconds ?? parked + (isPrompt(tokens) ? seconds - parked : 0);
  const client = Math.min(blocked, seconds - begunAfter);
  const output = seconds - begunAfter - client;
  const isReadable = tokens !== undefined && tokens.output >= output * READABLE_PER_SECOND && output < LONG_ANSWER_SECONDS;
  return { parked, server: begunAfter - parked, client, output: isReadable ? 0 : output };
}

/** An answer that takes a minute is slow at any speed. */
const LONG_ANSWER_SECONDS = 60;

const isPrompt = (tokens: FinishedRequest['tokens']): boolean => tokens !== undefined && newTokens(tokens) > tokens.output * PROMPT_SPEEDUP;

/** Tokens of the prompt that the server had to read. */
function newTokens(tokens: NonNullable<FinishedRequest['tokens']>): number {
  const { input, cached = 0 }: typeof tokens & { readonly cached?: number | undefined } = tokens;
  return input - cached;
}

function explainWait(request: EndedRequest, { entries }: SlowFacts): WhySlow {
  const { seconds, parkedSeconds: parked = 0 } = request.finished;
  const fallback = explainMoves(request.finished, parked);
  if (fallback !== undefined) return fallback;
  const from = request.at - seconds * 1000;
  const until = from + parked * 1000;
  const during = entries.filter(({ at }) => at >= from && at <= until);
  const before = entries.findLast(({ at, to }) => at < from && to !== undefined);
  const began = LOADING.has(before?.to) ? undefined : during.find(({ to }) => LOADING.has(to));
  const isLate = began !== undefined && began.at - from > until - began.at;
  const waited = secondsText(parked);
  if (isLate || during.some(({ cause }) => MEMORY_REASON.test(cause ?? '')))
    return { cause: 'memory', message: `It waited ${waited} for its slot, whose load could not begin until memory was free` };
  const states = [before, ...during].flatMap((entry) => entry?.to ?? []);
  if (states.length > 0 && states.every((state) => ANSWERING_STATES.has(state)))
    return { cause: 'queue', message: `It waited ${waited} for its turn, because its slot had as many requests as it takes` };
  const pulled = during.some(({ to }) => to === 'pulling') || before?.to === 'pulling';
  return { cause: 'load', message: `It waited ${waited} until its slot was loaded${pulled ? ', with a download' : ''}` };
}

/** Requests that came before it and ended while the server had not begun with it. */
function explainStart(request: EndedRequest, { others }: SlowFacts, server: number): WhySlow {
  const { finished } = request;
  const { slot, seconds, parkedSeconds: parked = 0, tokens } = finished;
  const fallback = explainMoves(finished, server);
  if (fallback !== undefined) return fallback;
  const arrivedAt = request.at - seconds * 1000;
  const openAt = arrivedAt + parked * 1000;
  const ends = others.flatMap((other) => {
    const isEarlier = other.finished.slot === slot && other.at - other.finished.seconds * 1000 < arrivedAt;
    return isEarlier && other.at <= openAt + server * 1000 ? [other.at] : [];
  });
  const text = secondsText(server);
  if (ends.length > 0 && Math.max(...ends) - openAt >= server * 500)
    return { cause: 'queue', message: `The server began after ${text}, when it had answered earlier requests` };
  if (tokens !== undefined && newTokens(tokens) >= LONG_PROMPT_TOKENS)
    return { cause: 'prompt', message: `The server read a prompt of ${newTokens(tokens)} tokens for ${text}` };
  return { cause: 'server', message: `The server took ${text} to begin with the answer` };
}

function explainMoves({ moves = [] }: FinishedRequest, seconds: number): WhySlow | undefined {
  const tried = moves.filter(({ reason }) => reason !== 'split').map(({ from, reason }) => `"${from}" (${reason})`);
  if (tried.length === 0) return undefined;
  return { cause: 'fallback', message: `It was with ${tried.join(' and ')} first, and ${secondsText(seconds)} passed before an answer` };
}

function explainOutput({ tokens }: FinishedRequest, output: number): WhySlow {
  const text = secondsText(output);
  if (tokens === undefined) return { cause: 'output', message: `The server took ${text} for the answer` };
  const perSecond = (tokens.output / output).toFixed(1);
  return { cause: 'output', message: `The server wrote ${tokens.output} tokens in ${text}, ${perSecond} per second` };
}

const secondsText = (seconds: number): string => `${seconds.toFixed(1)} s`;
