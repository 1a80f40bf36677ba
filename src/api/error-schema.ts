/** The bodies of errors, as schemas: one for each dialect. All of them contain the fields of `ErrorAnswer`. */
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

export const MessagesErrorAnswer = ErrorAnswer.extend({ type: z.literal('error'), request_id: z.string() });

export const RerankErrorAnswer = ErrorAnswer.extend({ id: z.string().describe('The request id'), message: z.string() });
