import { expect, test } from '@jest/globals';
import { createPulls } from '../../src/models/pulls.ts';
import type { Result } from '../../src/schema/words/failure.ts';
import { ModelId } from '../../src/schema/words/names.ts';

const MODEL = ModelId.parse('a.gguf');

function downloadOf() {
  const ended = Promise.withResolvers<Result<unknown>>();
  const signals: AbortSignal[] = [];
  const pulls = createPulls(async (_id, _onProgress, signal) => {
    signals.push(signal);
    return await ended.promise;
  });
  const join = (leaving: AbortController): Promise<Result<void>> => pulls.join(MODEL, () => undefined, leaving.signal);
  return { join, signals, finish: () => ended.resolve({ ok: true, value: undefined }) };
}

test('a caller that leaves ends its own wait, and the download of the others goes on', async () => {
  const { join, signals, finish } = downloadOf();
  const [leaving, staying] = [new AbortController(), new AbortController()];
  const [left, stayed] = [join(leaving), join(staying)];
  leaving.abort();
  expect(await left).toMatchObject({ ok: false });
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  finish();
  expect(await stayed).toEqual({ ok: true, value: undefined });
});

test('the last caller that leaves ends the download, and the next one begins another', async () => {
  const { join, signals } = downloadOf();
  const leaving = new AbortController();
  const left = join(leaving);
  leaving.abort();
  expect(await left).toMatchObject({ ok: false });
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
  void join(new AbortController());
  expect(signals).toHaveLength(2);
});
