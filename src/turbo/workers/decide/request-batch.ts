/** Packs finished requests of a worker into one array of numbers, which costs next to nothing to send. Pure. */
import type { FinishedRequest } from '../../../gateway/exchange-deps.ts';
import type { SlotName } from '../../../schema/words/names.ts';

/** `atDoor`: refused before the gateway, for its credentials or its form. Only metrics count it then. */
export interface ReportedRequest extends FinishedRequest {
  readonly atDoor: boolean;
}

export interface RequestBatch {
  readonly slots: readonly SlotName[];
  readonly routes: readonly string[];
  readonly callers: readonly string[];
  readonly codes: readonly string[];
  /** `COLUMNS` numbers for each request. NaN: undefined. */
  readonly numbers: Float64Array;
  /** By index; empty where there is none. */
  readonly ids: readonly string[];
  /** By index. Most requests have none. */
  readonly moves: readonly (readonly [index: number, moves: FinishedRequest['moves']])[];
  readonly traces: readonly (readonly [index: number, trace: FinishedRequest['trace']])[];
}

/**
 * Slot, route, status, seconds, parked and to first token, input and output tokens, at the door, caller, cached tokens,
 * estimated, code, blocked seconds, seconds of sound, images.
 */
const COLUMNS = 16;

export function packRequests(requests: readonly ReportedRequest[]): RequestBatch {
  const slots = new Map<SlotName, number>();
  const routes = new Map<string, number>();
  const callers = new Map<string, number>();
  const codes = new Map<string, number>();
  const numbers = new Float64Array(requests.length * COLUMNS);
  let at = 0;
  for (const request of requests) {
    const { slot, route, status, seconds, parkedSeconds, ttftSeconds, blockedSeconds, tokens, media, atDoor, caller, code } = request;
    numbers[at] = slot === undefined ? -1 : indexOf(slots, slot);
    numbers[at + 1] = indexOf(routes, route);
    numbers[at + 2] = status;
    numbers[at + 3] = seconds;
    numbers[at + 4] = parkedSeconds ?? Number.NaN;
    numbers[at + 5] = ttftSeconds ?? Number.NaN;
    numbers[at + 6] = tokens?.input ?? Number.NaN;
    numbers[at + 7] = tokens?.output ?? Number.NaN;
    numbers[at + 8] = atDoor ? 1 : 0;
    numbers[at + 9] = caller === undefined ? -1 : indexOf(callers, caller);
    numbers[at + 10] = tokens?.cached ?? Number.NaN;
    numbers[at + 11] = tokens?.isEstimated === true ? 1 : 0;
    numbers[at + 12] = code === undefined ? -1 : indexOf(codes, code);
    numbers[at + 13] = blockedSeconds ?? Number.NaN;
    numbers[at + 14] = media?.audioSeconds ?? Number.NaN;
    numbers[at + 15] = media?.images ?? Number.NaN;
    at += COLUMNS;
  }
  const moves = requests.flatMap((each, index) => (each.moves === undefined ? [] : [[index, each.moves] as const]));
  const traces = requests.flatMap((each, index) => (each.trace === undefined ? [] : [[index, each.trace] as const]));
  const ids = requests.map(({ requestId = '' }) => requestId);
  const names = { slots: [...slots.keys()], routes: [...routes.keys()], callers: [...callers.keys()], codes: [...codes.keys()] };
  return { ...names, numbers, ids, moves, traces };
}

export function unpackRequests({ slots, routes, callers, codes, numbers, ids, moves, traces }: RequestBatch): readonly ReportedRequest[] {
  const moved = new Map(moves);
  const traced = new Map(traces);
  return Array.from({ length: numbers.length / COLUMNS }, (_, index) => {
    const at = index * COLUMNS;
    return {
      slot: slots[numbers[at] ?? -1],
      requestId: ids[index] === '' ? undefined : ids[index],
      route: routes[numbers[at + 1] ?? -1] ?? '',
      status: numbers[at + 2] ?? 0,
      seconds: numbers[at + 3] ?? 0,
      parkedSeconds: known(numbers[at + 4]),
      ttftSeconds: known(numbers[at + 5]),
      tokens: tokensOf(numbers.subarray(at, at + COLUMNS)),
      media: mediaOf(known(numbers[at + 14]), known(numbers[at + 15])),
      atDoor: numbers[at + 8] === 1,
      caller: callers[numbers[at + 9] ?? -1],
      code: codes[numbers[at + 12] ?? -1],
      blockedSeconds: known(numbers[at + 13]),
      moves: moved.get(index),
      trace: traced.get(index),
    };
  });
}

function indexOf<Key>(indexes: Map<Key, number>, key: Key): number {
  const known = indexes.get(key);
  if (known !== undefined) return known;
  indexes.set(key, indexes.size);
  return indexes.size - 1;
}

function tokensOf(row: Float64Array): FinishedRequest['tokens'] {
  const input = known(row[6]);
  const output = known(row[7]);
  return input === undefined || output === undefined
    ? undefined
    : { input, output, cached: known(row[10]), isEstimated: row[11] === 1 ? true : undefined };
}

const mediaOf = (audioSeconds: number | undefined, images: number | undefined): FinishedRequest['media'] =>
  audioSeconds === undefined && images === undefined ? undefined : { audioSeconds, images };

const known = (value: number | undefined): number | undefined => (Number.isNaN(value) ? undefined : value);
