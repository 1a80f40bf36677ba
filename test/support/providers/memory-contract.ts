/** The part of the contract of providers about memory: a number of bytes for every model, more for a longer context, and where it is. */
import { describe, expect, test } from '@jest/globals';
import type { Sized, Provider } from '../../../src/providers/provider.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import type { SlotSpec } from '../../../src/schema/slot/slot-spec.ts';
import { factsOf, specOf } from './odd-models.ts';

const NAME = SlotName.parse('mine');

export interface CheckedModels {
  /** Filled before the tests begin. */
  readonly ordinary: readonly Sized[];
  /** Runs a check for many slots and models, ordinary or odd. */
  readonly always: (check: (spec: SlotSpec, model: Sized) => void) => void;
}

export function describeMemoryContract(provider: Provider, { ordinary, always }: CheckedModels): void {
  const { backends } = factsOf(provider);
  describe('the memory of a server', () => {
    const bytesOf = (spec: SlotSpec, model: Sized): number => {
      const { hostBytes, deviceBytes } = provider.estimateMemory(NAME, spec, model);
      return hostBytes + deviceBytes;
    };

    test('is a number of bytes for every model, and the same each time', () => {
      always((spec, model) => {
        const demand = provider.estimateMemory(NAME, spec, model);
        for (const bytes of [demand.hostBytes, demand.deviceBytes]) {
          expect(Number.isFinite(bytes)).toBe(true);
          expect(bytes).toBeGreaterThanOrEqual(0);
        }
        expect(provider.estimateMemory(NAME, spec, model)).toEqual(demand);
      });
    });

    test('does not shrink with a longer context, and is not less than the model', () => {
      for (const model of ordinary) {
        for (const backend of backends) {
          const bytes = [512, 2048, 8192, 65_536].map((context) =>
            bytesOf(specOf(provider, { backend, model: { default: 'm', context } }), model),
          );
          expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
          expect(bytes[0]).toBeGreaterThanOrEqual(model.sizeBytes);
        }
      }
    });

    test('is divided in ways that are the same each time, have names of their own and hold the whole model', () => {
      always((spec, model) => {
        const splits = provider.splits?.(NAME, spec, model) ?? [];
        expect(provider.splits?.(NAME, spec, model) ?? []).toEqual(splits);
        expect(new Set(splits.map(({ env }) => JSON.stringify(env))).size).toBe(splits.length);
        for (const { demand } of splits) {
          expect(Number.isFinite(demand.hostBytes + demand.deviceBytes)).toBe(true);
          expect(demand.hostBytes + demand.deviceBytes).toBeGreaterThanOrEqual(model.sizeBytes);
        }
      });
    });

    test('is that of the host alone without a device', () => {
      always((spec, model) => {
        if (spec.backend !== 'cpu' && spec.resources.gpus !== 0) return;
        expect(provider.estimateMemory(NAME, spec, model).deviceBytes).toBe(0);
      });
    });
  });
}
