/** Parts of requests that several routes read. */
import { z } from 'zod';
import { SlotName } from '../../schema/words/names.ts';
import { ApiError } from '../api-error.ts';

/** The slot in the path. */
export const SlotParams = z.object({ name: SlotName });

/** The version that an edit is based on. */
export const IfMatch = z
  .object({
    'if-match': z
      .string()
      .optional()
      .describe('Refuse the edit if the slot does not have this resource version; "*": if it does not exist'),
  })
  .describe('Headers');

/** Returns the version that an edit is based on, from `If-Match` or else the body's `resource_version`. */
export function ifMatchOf(headers: z.output<typeof IfMatch>, inBody?: string | null): { readonly ifMatch?: string } {
  const header = headers['if-match'];
  if (header === undefined) return inBody === undefined || inBody === null ? {} : { ifMatch: inBody };
  const match = /^(?:W\/)?"([^"]*)"$|^(\*|[^\s",]+)$/.exec(header.trim());
  const ifMatch = match?.[1] ?? match?.[2];
  if (ifMatch === undefined) throw new ApiError('request.invalid', 'Send one resource version in "If-Match"', { param: 'If-Match' });
  return { ifMatch };
}
