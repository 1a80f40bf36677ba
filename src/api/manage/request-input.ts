/** Reads what a request carries through a schema; what does not fit ends the request with `request.invalid` and the field's name. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';
import { ApiError } from '../api-error.ts';

export const SlotParams = z.object({ name: SlotName });

/** The body as JSON; a missing one counts as `{}`. */
export function bodyOf<T>(request: FastifyRequest, schema: z.ZodType<T>): T {
  return check(schema, request.body ?? {}, 'body');
}

export function queryOf<T>(request: FastifyRequest, schema: z.ZodType<T>): T {
  return check(schema, request.query, 'query');
}

export function slotNameOf(request: FastifyRequest): SlotName {
  return check(SlotParams, request.params, 'path').name;
}

/** The version that an edit is based on: `If-Match`, or the body's `resource_version`. */
export function ifMatchOf(request: FastifyRequest, inBody?: string | null): { readonly ifMatch?: string } {
  const header = request.headers['if-match'];
  if (header === undefined) return inBody === undefined || inBody === null ? {} : { ifMatch: inBody };
  const match = /^(?:W\/)?"([^"]*)"$|^(\*|[^\s",]+)$/.exec(header.trim());
  const ifMatch = match?.[1] ?? match?.[2];
  if (ifMatch === undefined) throw new ApiError('request.invalid', 'Send one resource version in "If-Match"', { param: 'If-Match' });
  return { ifMatch };
}

function check<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue === undefined) throw new ApiError('request.invalid', `The ${where} is not valid`);
  const path = [...issue.path, ...(issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].map(String).join('.');
  const param = path === '' ? where : path;
  throw new ApiError('request.invalid', `Bad value of "${param}": ${issue.message}`, { param });
}
