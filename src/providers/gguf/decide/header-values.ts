/** Looks up values of a GGUF header, and takes only those that make sense: a header may claim anything. Pure. */
import type { GgufHeader } from './parse-gguf-header.ts';

export interface HeaderValues {
  /** `general.architecture`, or an empty text. */
  readonly architecture: string;
  text(key: string): string | undefined;
  /** Returns a value below the architecture: an integer from 0 on. */
  count(key: string): number | undefined;
  /** Returns an array below the architecture; undefined if it is empty. */
  list(key: string): readonly number[] | undefined;
  /** Returns a value that is the same for all layers or has one value for each. */
  atLayer(key: string, layer: number): number | undefined;
  /** Returns the mean of such a value. */
  mean(key: string): number | undefined;
  /** Returns the largest of such a value. */
  largest(key: string): number | undefined;
}

/** No size or number of anything in a model is larger, and sums and products of a few of them stay exact enough. */
const MAX_COUNT = 2 ** 32;

export function headerValues({ values, lists }: Pick<GgufHeader, 'values' | 'lists'>): HeaderValues {
  const text = (key: string): string | undefined => {
    const value = values.get(key);
    return typeof value === 'string' ? value : undefined;
  };
  const architecture = text('general.architecture') ?? '';
  const count = (key: string): number | undefined => plausible(values.get(`${architecture}.${key}`));
  const list = (key: string): readonly number[] | undefined => {
    const items = lists.get(`${architecture}.${key}`);
    return items === undefined || items.length === 0 || items.some((item) => plausible(item) === undefined) ? undefined : items;
  };
  return {
    architecture,
    text,
    count,
    list,
    atLayer: (key, layer) => count(key) ?? list(key)?.[layer],
    mean(key) {
      const items = list(key);
      return count(key) ?? (items === undefined ? undefined : items.reduce((sum, item) => sum + item) / items.length);
    },
    largest(key) {
      const items = list(key);
      return count(key) ?? (items === undefined ? undefined : Math.max(...items));
    },
  };
}

function plausible(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= MAX_COUNT ? value : undefined;
}
