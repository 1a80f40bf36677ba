import { describe, expect, test } from '@jest/globals';
import { waitText } from '../../../../src/gateway/traffic/decide/wait-text.ts';
import type { RoutedSlot } from '../../../../src/reconciler/board.ts';

type Waited = Parameters<typeof waitText>[0];
const MI = 2 ** 20;
const pulling = (doneBytes: number, totalBytes?: number, bytesPerSecond?: number): Waited => ({
  admission: { kind: 'park' },
  status: {
    state: 'pulling',
    progress: {
      what: '/models/secret.gguf',
      doneBytes,
      ...(totalBytes === undefined ? {} : { totalBytes }),
      ...(bytesPerSecond === undefined ? {} : { bytesPerSecond }),
    },
  },
});
const stuck = (because: string): Waited => ({ admission: { kind: 'park', because }, status: { state: 'offline' } });
const warming: Pick<RoutedSlot, 'admission' | 'status'> = { admission: { kind: 'park' }, status: { state: 'warming' } };

describe('waitText()', () => {
  test.each<[string, Waited, [number, number], string]>([
    ['no board yet', undefined, [1, 1], 'svc waiting, position 1 of 1'],
    ['an unknown state', { admission: { kind: 'park' } }, [2, 3], 'svc waiting, position 2 of 3'],
    ['a load', warming, [1, 2], 'svc warming, position 1 of 2'],
    ['a download', pulling(43 * MI, 100 * MI, 5 * MI), [2, 5], 'svc pulling 43 %, about 12 s left, position 2 of 5'],
    ['a percent that is not complete', pulling(999, 1000), [1, 1], 'svc pulling 99 %, position 1 of 1'],
    ['more bytes than said', pulling(1100, 1000, 5), [1, 1], 'svc pulling 100 %, position 1 of 1'],
    ['an unknown size', pulling(5, undefined, 5), [1, 1], 'svc pulling, position 1 of 1'],
    ['a size of nothing', pulling(0, 0, 5), [1, 1], 'svc pulling, position 1 of 1'],
    ['a download that stands', pulling(500, 1000, 0), [1, 1], 'svc pulling 50 %, position 1 of 1'],
    ['the last second', pulling(999, 1000, 1000), [1, 1], 'svc pulling 99 %, about 1 s left, position 1 of 1'],
    ['90 seconds', pulling(0, 90, 1), [1, 1], 'svc pulling 0 %, about 90 s left, position 1 of 1'],
    ['minutes', pulling(0, 91, 1), [1, 1], 'svc pulling 0 %, about 2 min left, position 1 of 1'],
    ['hours', pulling(0, 3 * 3600, 1), [1, 1], 'svc pulling 0 %, about 3 h left, position 1 of 1'],
    ['an obstacle', stuck('Memory is short'), [1, 1], 'svc offline, position 1 of 1: Memory is short'],
    ['an obstacle in lines', stuck('a\r\n\ndata: b'), [1, 1], 'svc offline, position 1 of 1: a data: b'],
  ])('%s', (_what, slot, [position, waiting], text) => {
    expect(waitText(slot, { position, waiting })).toBe(text);
  });
});
