/** The answers that a route declares. The type of a handler follows from them, and so does the OpenAPI document. */
import type { Readable } from 'node:stream';
import type { z } from 'zod';
import type { ErrorCode } from '../../schema/words/error-codes.ts';

type Headers = Readonly<Record<string, string>>;

interface AnswerFacts {
  readonly description: string;
  /** Headers besides `x-request-id`, with their meanings. */
  readonly headers?: Headers;
}

export interface JsonAnswer<Schema extends z.ZodType = z.ZodType> extends AnswerFacts {
  readonly kind: 'json';
  readonly schema: Schema;
}

interface TextAnswer extends AnswerFacts {
  readonly kind: 'text';
  /** `text/plain; charset=utf-8` */
  readonly mediaType: string;
  /** Those that a reply may name in its header `content-type`. Default: none. */
  readonly otherTypes?: readonly string[];
}

interface EmptyAnswer extends AnswerFacts {
  readonly kind: 'empty';
}

export interface PassedAnswer extends AnswerFacts {
  readonly kind: 'passed';
  /** Media type → what the body is expected to be. */
  readonly content: Readonly<Record<string, z.ZodType>>;
}

type Answer = JsonAnswer | TextAnswer | EmptyAnswer | PassedAnswer;

export type Answers = Readonly<Record<number, Answer>>;

type BodyOf<Declared> =
  Declared extends JsonAnswer<infer Schema> ? Immutable<z.output<Schema>> : Declared extends TextAnswer ? string | Readable : undefined;

/** A declared status, with a body of the type declared for it. */
export type ReplyTo<Declared extends Answers> = {
  readonly [Status in keyof Declared]: {
    readonly status: Status;
    readonly body: BodyOf<Declared[Status]>;
    readonly headers?: Headers;
  };
}[keyof Declared];

type Scalar = string | number | boolean | null | undefined;
/** `T` with everything in it read-only, so that handlers can return what they must not change. */
export type Immutable<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Immutable<Item>[]
      : { readonly [Key in keyof T]: Immutable<T[Key]> };

type Camel<Key> = Key extends `${infer Head}_${infer Rest}` ? `${Head}${Capitalize<Camel<Rest>>}` : Key;

/** The fields of a body, and of the objects in it, in the program's form: keys in camelCase, undefined for null. */
export type Facts<Body> = {
  readonly [Key in keyof Body as null extends Body[Key] ? never : Camel<Key>]: FactsIn<Body[Key]>;
} & {
  readonly [Key in keyof Body as null extends Body[Key] ? Camel<Key> : never]?: FactsIn<Body[Key]> | undefined;
};

type FactsIn<T> = unknown extends T
  ? T
  : T extends Scalar
    ? T
    : T extends readonly (infer Item)[]
      ? readonly FactsIn<Item>[]
      : string extends keyof T
        ? Immutable<T>
        : Facts<T>;

export function json<Schema extends z.ZodType>(description: string, schema: Schema, headers: Headers = {}): JsonAnswer<Schema> {
  return { kind: 'json', description, schema, headers };
}

export function text(description: string, mediaType: string, headers: Headers = {}): TextAnswer {
  return { kind: 'text', description, mediaType, headers };
}

export const empty = (description: string, headers: Headers = {}): EmptyAnswer => ({ kind: 'empty', description, headers });

export interface ApiErrorOptions {
  /** The field, header or path parameter at fault. */
  readonly param?: string | null;
  readonly headers?: Headers;
}

/** Ends a request with an error in the documented shape. Handlers throw it, the error handler renders it. */
export class ApiError extends Error {
  readonly code: ErrorCode;
  readonly param: string | null;
  readonly headers: Headers;

  constructor(code: ErrorCode, message: string, { param = null, headers = {} }: ApiErrorOptions = {}) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.param = param;
    this.headers = headers;
  }
}

const ENCODINGS = ['br', 'gzip'] as const;
export type Encoding = (typeof ENCODINGS)[number] | 'identity';

/** The best of the encodings that `Accept-Encoding` allows (RFC 9110, section 12.5.3). A quality of 0 refuses one. */
export function chooseEncoding(accepted: string | readonly string[] | undefined, offered: readonly Encoding[] = ENCODINGS): Encoding {
  const refused = /^(?:0(?:\.0{1,3})?)$/;
  const names = new Set(
    String(accepted ?? '')
      .split(',')
      .flatMap((part) => {
        const [name = '', ...rest] = part.split(';').map((text) => text.trim().toLowerCase());
        return rest.some((text) => text.startsWith('q=') && refused.test(text.slice(2))) ? [] : [name];
      }),
  );
  return offered.find((encoding) => names.has(encoding)) ?? 'identity';
}

/** Matches `If-None-Match` weakly (RFC 9110, section 13.1.2). */
export function hasVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  const bare = (tag: string): string => tag.trim().replace(/^W\//, '');
  const tags = (ifNoneMatch ?? '').split(',').map(bare);
  return tags.includes('*') || tags.includes(bare(etag));
}
