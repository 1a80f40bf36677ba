/** The part of the contract of providers about models on disk: they are recognized by name, read in part, and refused with a reason if they are damaged. */
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Provider } from '../../../src/providers/provider.ts';
import { ModelId } from '../../../src/schema/words/names.ts';
import { filesOf, NoSuchFile, type SampleModel } from './files-in-memory.ts';
import { frozen } from './odd-models.ts';

const RUNS = { numRuns: 150 };
const ID = ModelId.parse('m');

export function describeFormatContract(
  { kind, models, accepts }: Provider,
  samples: Readonly<Record<string, SampleModel>>,
  maxReadBytes: number,
): void {
  describe('the models', () => {
    test('are recognized by their names, whatever the names are', () => {
      const names = fc.oneof(fc.string(), fc.constantFrom('', '.', '..', 'a/b', 'constructor', 'x.gguf', 'y'.repeat(10_000)));
      fc.assert(
        fc.property(names, fc.option(fc.array(names, { maxLength: 4 }), { nil: undefined }), (name, beside) => {
          const entry = frozen({ name, names: beside });
          expect(['model', 'part', undefined]).toContain(models.recognize(entry));
          expect(models.recognize(entry)).toBe(models.recognize(entry));
          expect(models.filesOf?.(name).length).not.toBe(0);
        }),
        RUNS,
      );
    });

    for (const [what, sample] of Object.entries(samples)) {
      test(`${what}: is read in part, always with the same result, which is plain data`, async () => {
        expect(models.recognize(sample.entry)).toBe('model');
        const files = filesOf(sample);
        const reading = await models.read({ id: ID, entry: sample.entry }, files);
        if (reading.kind !== 'model') throw new Error(reading.message);
        expect(reading.sizeBytes).toBeGreaterThan(0);
        expect(files.readBytes()).toBeLessThanOrEqual(maxReadBytes);
        expect(JSON.parse(JSON.stringify(reading.contents))).toEqual(reading.contents);
        expect(await models.read({ id: ID, entry: sample.entry }, filesOf(sample))).toEqual(reading);
        expect(models.contentsFrom(reading.contents, ['a/b', 'a/c'])).toMatchObject(reading.contents);
      });

      test(`${what}: is refused with a reason, never with an error, if a file of it is cut off or has other bytes`, async () => {
        const names = Object.keys(sample.files);
        await fc.assert(
          fc.asyncProperty(fc.constantFrom(...names), fc.nat(), fc.uint8Array({ maxLength: 200 }), async (name, cut, bytes) => {
            const whole = sample.files[name] ?? new Uint8Array();
            const kept = whole.slice(0, cut % Math.max(1, whole.length));
            for (const changed of [kept, bytes, Buffer.concat([kept, bytes])]) {
              const broken = { ...sample, files: { ...sample.files, [name]: changed } };
              const reading = await models.read({ id: ID, entry: sample.entry }, filesOf(broken));
              if (reading.kind === 'unusable') expect(reading.message).toMatch(/^(The|").*"m".{10,}[^.]$/s);
              else expect(reading.sizeBytes).toBeGreaterThanOrEqual(0);
            }
          }),
          { numRuns: 40 },
        );
      });

      test(`${what}: fails as the store does, or says so, if a file of it is missing`, async () => {
        for (const name of Object.keys(sample.files)) {
          const { [name]: _gone, ...files } = sample.files;
          const reading = models.read({ id: ID, entry: sample.entry }, filesOf({ ...sample, files }));
          const result = await reading.catch((error: unknown) => error);
          if (!(result instanceof NoSuchFile)) expect(result).toMatchObject({ kind: expect.stringMatching(/^(model|unusable)$/) });
        }
      });
    }

    test('are described by the names of their files for those who cannot read them', () => {
      for (const files of [[], ['m'], ['a/m', 'a/mmproj-x.gguf', 'b/c']]) {
        const described = models.contentsFrom(undefined, files);
        expect(models.contentsFrom(undefined, files)).toEqual(described);
      }
      if (accepts === undefined) expect(models.kind).toBe(kind);
    });
  });
}
