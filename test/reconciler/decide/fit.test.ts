import { describe, expect, test } from '@jest/globals';
import { findFit, explainFit, type FitQuestion } from '../../../src/reconciler/decide/fit.ts';
import { parseSlot } from '../../../src/schema/slot/slot-spec.ts';
import { recordedHardware } from '../../support/hardware/recorded-machines.ts';
import { slotName } from '../../support/simulation/world.ts';

const GIB = 2 ** 30;
const DEFAULT_CONTEXT = 32_768;

/** A model of 4 GiB whose cache takes 64 KiB for each token. */
function question(part: Partial<FitQuestion> & { readonly context?: number; readonly device?: boolean } = {}): FitQuestion {
  const { context, device = false, ...more } = part;
  const name = slotName('fit');
  const backend = device ? 'cuda' : 'cpu';
  const parsed = parseSlot(name, {
    provider: 'gguf',
    backend,
    model: { default: 'a.gguf', ...(context === undefined ? {} : { context }) },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return {
    spec: parsed.spec,
    estimate: ({ model }) => {
      const bytes = 4 * GIB + (model.context ?? DEFAULT_CONTEXT) * 65_536;
      return device ? { hostBytes: GIB, deviceBytes: bytes } : { hostBytes: bytes, deviceBytes: 0 };
    },
    hardware: undefined,
    pools: [{ id: 'host', budgetBytes: 8 * GIB, othersBytes: 0 }],
    promised: {},
    ...more,
  };
}

const answer = (asked: FitQuestion): string =>
  explainFit({ model: 'a.gguf', context: asked.spec.model.context, backend: asked.spec.backend }, findFit(asked));

describe('findFit()', () => {
  test('says that a model fits', () => {
    expect(findFit(question())).toMatchObject({ fits: true, fitsNow: true, placement: { host: 6 * GIB }, largestContext: undefined });
    expect(answer(question({ promised: { host: GIB } }))).toBe(
      '"a.gguf" fits with its own context on "cpu": it needs 6.0 GiB of the memory of the host, and 8.0 GiB are there for slots, of which slots have 1.0 GiB now',
    );
  });

  test('says nothing about a context where it changes nothing, as for models that draw images', () => {
    const fixed = (hostBytes: number): FitQuestion => question({ estimate: () => ({ hostBytes, deviceBytes: 0 }) });
    expect(answer(fixed(6 * GIB))).toMatch(/^"a\.gguf" fits on "cpu": it needs 6\.0 GiB/);
    expect(answer(fixed(60 * GIB))).toMatch(/^"a\.gguf" does not fit on "cpu": .* Choose a smaller model or quantisation$/);
  });

  test('says that other slots would have to give way', () => {
    expect(findFit(question({ promised: { host: 3 * GIB } }))).toMatchObject({ fits: true, fitsNow: false });
    expect(answer(question({ promised: { host: 3 * GIB } }))).toContain('It fits once other slots give way');
  });

  test('says with which context a model would fit', () => {
    const asked = question({ context: 131_072 });
    expect(findFit(asked)).toMatchObject({ fits: false, fitsNow: false, largestContext: 65_536 });
    expect(answer(asked)).toBe(
      '"a.gguf" does not fit with a context of 131072 tokens on "cpu": it needs 12.0 GiB of the memory of the host, and 8.0 GiB are there for slots. Set a context of 65536 tokens or less, with which it fits',
    );
  });

  test('considers other programs', () => {
    const pools = [{ id: 'host', budgetBytes: 8 * GIB, othersBytes: 3 * GIB }];
    expect(findFit(question({ pools }))).toMatchObject({ fits: false, largestContext: 16_384 });
    expect(findFit(question({ pools: [{ id: 'host', budgetBytes: 4 * GIB, othersBytes: 0 }] }))).toMatchObject({
      fits: false,
      largestContext: undefined,
    });
  });

  test('looks at the devices of the machine', () => {
    const hardware = recordedHardware('rtx-3090-and-4090');
    const host = { id: 'host', budgetBytes: 8 * GIB, othersBytes: 0 };
    const device = (id: string, gib: number) => ({ id, budgetBytes: gib * GIB, othersBytes: 0 });
    const on = (gpu0: number, gpu1: number) =>
      findFit(question({ device: true, hardware, pools: [host, device('gpu0', gpu0), device('gpu1', gpu1)] }));
    expect(on(24, 8)).toMatchObject({ fits: true, placement: { host: GIB, gpu1: 6 * GIB } });
    expect(on(4, 4)).toMatchObject({ fits: true, placement: { host: GIB, gpu0: 3 * GIB, gpu1: 3 * GIB } });
    expect(on(2, 2)).toMatchObject({ fits: false, largestContext: undefined });
    const asked = question({ device: true, hardware, pools: [host, device('gpu0', 24), device('gpu1', 8)] });
    const named = { ...asked.spec, resources: { ...asked.spec.resources, devices: ['gpu0'] } };
    expect(findFit({ ...asked, spec: named })).toMatchObject({ fits: true, placement: { host: GIB, gpu0: 6 * GIB } });
  });

  test('does not pretend to know what is not known', () => {
    const pools = [{ id: 'host', budgetBytes: undefined, othersBytes: 0 }];
    expect(answer(question({ pools }))).toContain('how much memory there is here is not known');
  });
});
