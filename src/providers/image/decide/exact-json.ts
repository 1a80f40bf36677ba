/** JSON with integers of any size: seeds have up to 64 bits, and a JavaScript number holds 53 of them. Pure. */
import { parseJson } from '../../../platform/decide/parse-json.ts';

/** Integers beyond 2^53 become `bigint`, from the text as it was written. Undefined if the text is not JSON. */
export function parseExactJson(text: string): unknown {
  const exact = (_key: string, value: unknown, { source }: { readonly source?: string } = {}): unknown =>
    typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && /^-?\d{1,40}$/.test(source)
      ? BigInt(source)
      : value;
  try {
    return JSON.parse(text, exact);
  } catch {
    return parseJson(text);
  }
}

/** Writes what `parseExactJson` reads: `JSON.stringify` fails for a `bigint`. */
export function exactJson(value: unknown): string {
  if (typeof value === 'bigint') return value.toString();
  if (Array.isArray(value)) return `[${value.map((each: unknown) => exactJson(each)).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  return `{${Object.entries(value)
    .map(([key, each]) => `${JSON.stringify(key)}:${exactJson(each)}`)
    .join(',')}}`;
}
