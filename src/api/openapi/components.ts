/** The named schemas of the OpenAPI document: every schema of an answer that has a name in the program keeps it. */
import { z } from 'zod';
import { isTable } from '../../schema/words/key-case.ts';
import * as manage from '../../schema/status/answers.ts';
import * as profiles from '../../schema/status/resource-answers.ts';
import * as system from '../manage/system-answers.ts';
import * as inference from '../v1/inference-schemas.ts';

export type JsonSchema = Readonly<Record<string, unknown>>;

const ANSWERS: Readonly<Record<string, z.ZodType>> = { ...system, ...manage, ...profiles, ...inference.ANSWERS };
const REQUESTS: Readonly<Record<string, z.ZodType>> = inference.REQUESTS;
const HERE = '#/components/schemas/';

export function namedSchemas(): Readonly<Record<string, JsonSchema>> {
  return { ...convert(ANSWERS, 'output'), ...convert(REQUESTS, 'input') };
}

export function answerSchema(schema: z.ZodType): JsonSchema {
  return reference(ANSWERS, schema) ?? inline(schema, 'output');
}

/** Like `answerSchema`, for requests: fields with a default are optional. */
export function requestSchema(schema: z.ZodType): JsonSchema {
  return reference(REQUESTS, schema) ?? inline(schema, 'input');
}

function reference(named: Readonly<Record<string, z.ZodType>>, schema: z.ZodType): JsonSchema | undefined {
  const found = Object.entries(named).find(([, known]) => known === schema);
  return found && { $ref: `${HERE}${found[0]}` };
}

type Direction = 'input' | 'output';

function convert(named: Readonly<Record<string, z.ZodType>>, io: Direction): Readonly<Record<string, JsonSchema>> {
  const registry = z.registry<{ id: string }>();
  for (const [id, schema] of Object.entries(named)) registry.add(schema, { id });
  const { schemas } = z.toJSONSchema(registry, { ...optionsOf(io), uri: (id) => `${HERE}${id}` });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

function inline(schema: z.ZodType, io: Direction): JsonSchema {
  return bare(z.toJSONSchema(schema, optionsOf(io)));
}

/** Answers may get more fields later, so no object of an answer is closed. */
function optionsOf(io: Direction) {
  return {
    io,
    target: 'draft-2020-12',
    unrepresentable: 'any',
    override({ jsonSchema }: { readonly jsonSchema: z.core.JSONSchema.BaseSchema }) {
      if (io === 'output' && jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    },
  } as const;
}

/** Drops the keys that only a standalone schema has. */
function bare(schema: object): JsonSchema {
  return isTable(schema)
    ? Object.fromEntries(Object.entries(schema).filter(([key]) => !['$schema', '$id', 'id', '~standard'].includes(key)))
    : {};
}
