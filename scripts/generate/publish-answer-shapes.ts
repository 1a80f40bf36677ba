/** The checks of answers in `svcctl`, from the schemas of the API. Pure. */
import { z } from 'zod';
import type { Shape } from '../../src/cli/connect/answer-shape.ts';
import { ANSWERS } from '../../src/cli/connect/api-answers.ts';

type Schema = z.core.JSONSchema.BaseSchema;

/** One line for each answer. */
export function answerShapes(): string {
  const lines = Object.entries(ANSWERS).map(([name, schema]) => `  ${JSON.stringify(name)}: ${JSON.stringify(shapeOf(schema))}`);
  return `{\n${lines.join(',\n')}\n}\n`;
}

export function shapeOf(schema: z.ZodType): Shape {
  return reduce(z.toJSONSchema(schema, { unrepresentable: 'any', reused: 'inline' }));
}

/** Ranges, patterns and the values of enumerations are left out: another version of the service may have others. */
function reduce(schema: Schema): Shape {
  const { type, items, properties, required = [], additionalProperties } = schema;
  if (type === 'array' && typeof items === 'object' && !Array.isArray(items)) return [reduce(items)];
  if (type === 'object' && properties !== undefined) {
    const fields = Object.entries(properties).map(([name, field]) => {
      const { schema: inner, isNullable } = withoutNull(Object(field));
      return [isNullable || !required.includes(name) ? `${name}?` : name, reduce(inner)];
    });
    return Object.fromEntries(fields);
  }
  if (type === 'object') return { '*': reduce(Object(additionalProperties)) };
  if (type === 'integer') return 'number';
  if (type === 'string' || type === 'number' || type === 'boolean') return type;
  if (type === undefined && schema.anyOf === undefined) return 'any';
  throw new Error(`Teach "svcctl" to check a value of this schema: ${JSON.stringify(schema)}`);
}

/**
 * zod writes a value that can be null as `{ type: ['string', 'null'] }` or as `{ anyOf: [schema, { type: 'null' }] }`.
 */
function withoutNull(schema: Schema): { readonly schema: Schema; readonly isNullable: boolean } {
  const types: readonly unknown[] = Array.isArray(schema.type) ? schema.type.filter((type: unknown) => type !== 'null') : [];
  const [only, ...more] =
    types.length > 0 ? types.map((type) => ({ ...schema, type })) : (schema.anyOf ?? []).filter(({ type }) => type !== 'null');
  return only !== undefined && more.length === 0 ? { schema: Object(only), isNullable: true } : { schema, isNullable: false };
}
