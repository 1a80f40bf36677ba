/** The answer of `/api/requests` as a schema. */
import { z } from 'zod';
import { SlotName } from './words/names.ts';

export const RequestEntries = z.object({
  requests: z
    .array(
      z.object({
        at: z.iso.datetime().describe('When it ended'),
        slot: SlotName.nullable().describe('Null if it did not reach a slot'),
        route: z.string(),
        status: z.int().describe('499: the client left before the answer'),
        because: z
          .enum(['failed', 'slow'])
          .describe('"slow": a streamed answer began after 10 s or more, or another one took at least a minute'),
        seconds: z.number().min(0),
        first_seconds: z.number().min(0).nullable().describe('Until the answer began; null if it was not streamed'),
        parked_seconds: z.number().min(0).nullable().describe('How long it waited for its slot; null if it did not'),
      }),
    )
    .describe('The newest first, at most 200'),
});
