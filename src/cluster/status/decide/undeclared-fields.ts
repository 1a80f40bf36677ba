/**
 * Fields of a status that the CustomResourceDefinition on the server does not have, because it is older than this program: Helm never upgrades one. A
 * server-side apply with such a field is rejected as a whole, so that not even the conditions would be published. Pure.
 */
import type { Failure } from '../../../schema/words/failure.ts';

/** `failed to create typed patch object (…): .status.lastGood: field not declared in schema`, once for each field. */
const UNDECLARED = /\.status\.(\w+)[^:\s]*: field not declared in schema/g;

export function findUndeclared({ message }: Failure): readonly string[] {
  return [...new Set([...message.matchAll(UNDECLARED)].flatMap(([, field]) => field ?? []))];
}

/** Returns the same object if it has none of the fields. */
export function withoutFields<Status extends object>(status: Status, fields: ReadonlySet<string>): Partial<Status> {
  if (!Object.keys(status).some((field) => fields.has(field))) return status;
  const kept: Partial<Status> = { ...status };
  for (const field of Object.keys(kept)) if (fields.has(field)) Reflect.deleteProperty(kept, field);
  return kept;
}
