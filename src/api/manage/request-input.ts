/** Parses a request's input with schemas. Invalid input ends the request with `request.invalid` and the name of the field. */
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { SlotName } from '../../schema/names.ts';
import { ApiError } from '../api-error.ts';

const SlotParams = z.object({ name: SlotName });

/** Parses the JSON body; a missing one counts as `{}`. */
export function bodyOf<T>(request: FastifyRequest, schema: z.ZodType<T>): T {
  return parse(schema, request.body ?? {}, 'body');
}

export function queryOf<T>(request: FastifyRequest, schema: z.ZodType<T>): T {
  return parse(schema, request.query, 'query');
}

export function slotNameOf(request: FastifyRequest): SlotName {
  return parse(SlotParams, request.params, 'path').name;
}

/** Returns the version that an edit is based on, from `If-Match` or else the body's `resource_version`. */
export function ifMatchOf(request: FastifyRequest, inBody?: string | null): { readonly ifMatch?: string } {
  const header = request.headers['if-match'];
  if (header === undefined) return inBody === undefined || inBody === null ? {} : { ifMatch: inBody };
  const match = /^(?:W\/)?"([^"]*)"$|^(\*|[^\s",]+)$/.exec(header.trim());
  const ifMatch = match?.[1] ?? match?.[2];
  if (ifMatch === undefined) throw new ApiError('request.invalid', 'Send one resource version in "If-Match"', { param: 'If-Match' });
  return { ifMatch };
}

function parse<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  if (issue === undefined) throw new ApiError('request.invalid', `Correct the ${where} of the request`);
  const path = [...issue.path, ...(issue.code === 'unrecognized_keys' ? issue.keys.slice(0, 1) : [])].map(String).join('.');
  const param = path === '' ? where : path;
  throw new ApiError('request.invalid', `Correct "${param}": ${issue.message}`, { param });
}
