/** The calls of the routes for captures, and what the store has before each. */
import type { Captures } from '../../../src/files/captures.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { openCaptures } from '../../support/open-captures.ts';

const START = 'POST /api/captures';
const LIST = 'GET /api/captures';
const READ = 'GET /api/captures/{id}';
const STOP = 'POST /api/captures/{id}/stop';
const DELETE = 'DELETE /api/captures/{id}';
/** The world has no authentication. */
const ANYONE = { caller: 'anyone' };

interface CaptureCall {
  readonly operation: string;
  readonly expect: number | string;
  readonly body?: unknown;
  /** How many captures run. */
  readonly running?: number;
  /** The id is of a capture that exists. */
  readonly isKnown?: boolean;
}

const CAPTURE_CALLS: readonly CaptureCall[] = [
  { operation: START, expect: 201, body: ANYONE },
  { operation: START, expect: 201, body: { slot: 'primary', requests: 1000, seconds: 3600 }, running: 3 },
  { operation: START, expect: 'capture.unsupported', body: ANYONE, running: 4 },
  { operation: START, expect: 'token.not_found', body: { caller: 'token:1a2b3c4d' } },
  { operation: START, expect: 'slot.not_found', body: { slot: 'none' } },
  { operation: START, expect: 'request.invalid', body: {} },
  { operation: START, expect: 'request.invalid', body: { ...ANYONE, requests: 1001 } },
  { operation: START, expect: 'request.invalid', body: { ...ANYONE, seconds: 0 } },
  { operation: START, expect: 'request.invalid', body: { ...ANYONE, key: 'mine' } },
  { operation: LIST, expect: 200, running: 2 },
  { operation: READ, expect: 200, isKnown: true },
  { operation: READ, expect: 'capture.not_found' },
  { operation: STOP, expect: 200, isKnown: true },
  { operation: STOP, expect: 'capture.not_found' },
  { operation: DELETE, expect: 204, isKnown: true },
  { operation: DELETE, expect: 'capture.not_found' },
];

/** The paths are known when the store has been prepared. */
export function createCaptureCalls() {
  let files: Awaited<ReturnType<typeof openCaptures>> | undefined;
  let store: Captures | undefined;
  const calls = CAPTURE_CALLS.map(({ operation, expect, body, ...given }) => {
    let id = '';
    return {
      operation,
      expect,
      body,
      get path() {
        return (operation.split(' ')[1] ?? '').replace('{id}', id);
      },
      prepare: async () => void (id = await prepareCaptures(store, given)),
    };
  });
  async function open(): Promise<Captures> {
    files = await openCaptures();
    store = files.open();
    return store;
  }
  return { calls, open, remove: async () => await files?.remove() };
}

async function prepareCaptures(
  store: Captures | undefined,
  { running = 0, isKnown = false }: Pick<CaptureCall, 'running' | 'isKnown'>,
): Promise<string> {
  for (const { id } of (await store?.list()) ?? []) await store?.remove(id);
  const wish = { slot: SlotName.parse('primary'), requests: 10, seconds: 300 };
  for (let count = 0; count < running; count += 1) await store?.start(wish);
  const known = isKnown ? await store?.start(wish) : undefined;
  return known !== undefined && 'id' in known ? known.id : '0123456789abcdef';
}
