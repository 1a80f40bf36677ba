import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { INFERENCE_PATHS } from '../../../../src/gateway/route/decide/inference-paths.ts';
import { bodySettingOf, slowBody } from '../../../../src/gateway/route/decide/request-limits.ts';

const KIB = 1024;
/** `silentMs`: since the last piece; `bytes`: received in `ms`. */
const judge = (ms: number, bytes: number, silentMs = 0): string | undefined =>
  slowBody({ startedAt: 7, now: 7 + ms, lastAt: 7 + ms - silentMs, bytes });

test.each([
  ['nothing yet', 1000, 0, 0, undefined],
  ['silence of a minute', 60_000, KIB * KIB, 60_000, undefined],
  ['a longer silence', 60_001, KIB * KIB, 60_001, 'paused'],
  ['a few bytes in half a minute', 30_000, 3, 0, undefined],
  ['a few bytes in more time', 31_000, 3, 0, 'bytes per second'],
  ['the least rate after the first half minute', 90_000, 60 * KIB, 0, undefined],
  ['less than that', 90_000, 60 * KIB - 1, 0, 'bytes per second'],
])('%s is judged', (_what, ms, bytes, silentMs, problem) => {
  if (problem === undefined) expect(judge(ms, bytes, silentMs)).toBeUndefined();
  else expect(judge(ms, bytes, silentMs)).toContain(problem);
});

test('a faster body is never refused where a slower one is not', () => {
  fc.assert(
    fc.property(fc.nat(600_000), fc.nat(KIB * KIB), fc.nat(KIB * KIB), (ms, bytes, more) => {
      if (judge(ms, bytes) === undefined) expect(judge(ms, bytes + more)).toBeUndefined();
    }),
  );
});

test('bodies of audio routes, of speech too, have the limit of audio', () => {
  for (const path of INFERENCE_PATHS)
    expect([path.path, bodySettingOf(path)]).toEqual([path.path, path.path.includes('/audio/') ? 'SVC_AUDIO_LIMIT' : 'SVC_BODY_LIMIT']);
});
