/** How records of the program appear in the JSON of the API. */
import { renameKey } from '../../../schema/key-case.ts';

/** Returns the record with keys in snake_case and null for undefined. Values are not converted. Pure. */
export function toJson(record: object): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries<unknown>({ ...record }).map(([key, value]) => [renameKey(key), value ?? null]));
}

/** Unix milliseconds as ISO 8601 in UTC; null for "not yet". Pure. */
export function isoTime(at: number): string | null {
  return at > 0 && Number.isFinite(at) ? new Date(at).toISOString() : null;
}
