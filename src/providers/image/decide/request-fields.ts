/** The fields of a request for images, from JSON or from a form: the same ones at top level and in `extra_body`. Pure. */
import { z } from 'zod';
import type { ErrorCode } from '../../../schema/words/error-codes.ts';
import type { TranslatableBody } from '../../translation.ts';
import { parseExactJson } from './exact-json.ts';

/** Why a request is refused. */
export interface ParameterProblem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly param: string;
}

/** Ends the reading of a request at the first field that is wrong. */
export class BadField extends Error {
  readonly problem: ParameterProblem;

  constructor(problem: ParameterProblem) {
    super(problem.message);
    this.problem = problem;
  }
}

export function invalid(param: string, message: string): BadField {
  return new BadField({ code: 'request.invalid', message, param });
}

/** Returns what a `BadField` says; throws anything else again. */
export function problemOfField(error: unknown): ParameterProblem {
  if (error instanceof BadField) return error.problem;
  throw error;
}

/** Returns the value of a field; undefined if the client did not set it. Integers that a number cannot hold are `bigint`. */
export type Field = (name: string) => unknown;

export interface RequestFields {
  readonly field: Field;
  /** Of all fields that are set. */
  readonly names: readonly string[];
}

const AnyObject = z.record(z.string(), z.unknown());

/** Top-level fields take precedence. An empty text in a form counts as not set, as `null` does in JSON. */
export function requestFields(body: TranslatableBody): RequestFields {
  const isForm = body.kind === 'form';
  const own = isForm ? Object.fromEntries(body.fields.map(({ name, value }) => [name, value])) : objectOf(parseExactJson(body.text));
  const extra = own['extra_body'];
  const more = objectOf(typeof extra === 'string' ? parseExactJson(extra) : extra);
  const isSet = (value: unknown): boolean => value !== undefined && value !== null && !(isForm && value === '');
  const field: Field = (name) => [own, more].map((fields) => (Object.hasOwn(fields, name) ? fields[name] : undefined)).find(isSet);
  const all = new Set([...Object.keys(own).filter((name) => name !== 'extra_body'), ...Object.keys(more)]);
  return { field, names: [...all].filter((name) => field(name) !== undefined) };
}

function objectOf(value: unknown): Readonly<Record<string, unknown>> {
  return AnyObject.safeParse(value).data ?? {};
}
