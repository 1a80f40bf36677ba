/** The body of every error, as a schema. */
import { z } from 'zod';

export const ErrorAnswer = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable().describe('The field, header or path parameter at fault'),
    code: z.string().nullable().describe('The errors page of the reference lists the codes of the gateway; a model server may send others'),
    origin: z.enum(['gateway', 'upstream']),
  }),
});
