/** Renders the route table, with the schemas that its handlers parse with, as an OpenAPI 3.0 document. Pure. */
import { z } from 'zod';
import { ERROR_CODES } from '../schema/error-codes.ts';
import { isTable } from '../schema/key-case.ts';
import { SlotName } from '../schema/names.ts';
import type { Access } from './ports.ts';
import type { Route, RouteMethod } from './route.ts';

const ACCESS_TEXT: Readonly<Record<Access, string>> = {
  open: 'Needs no credential.',
  read: 'Needs any scope.',
  v1: 'Needs scope "v1-only", "all" or "admin".',
  all: 'Needs scope "all" or "admin".',
  admin: 'Needs scope "admin".',
};

const ErrorAnswer = z.object({
  error: z.object({
    message: z.string(),
    type: z.string(),
    param: z.string().nullable(),
    code: z
      .string()
      .nullable()
      .describe(`From the gateway: ${Object.keys(ERROR_CODES).join(', ')}`),
    origin: z.enum(['gateway', 'upstream']),
  }),
});

type JsonSchema = Readonly<Record<string, unknown>>;

export function openApiDocument(routes: readonly Route[], version: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([A-Za-z_]+)/g, '{$1}').replace(/\*$/, '{rest}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route, path);
  }
  return {
    openapi: '3.0.3',
    info: { title: 'svc', version, description: 'An OpenAI-compatible inference gateway and the management API of its slots' },
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: '`svc_<id>.<secret>`; required if authentication is on' } },
      schemas: { Error: jsonSchema(ErrorAnswer) },
    },
  };
}

function operation(route: Route, path: string): object {
  const body = route.schemas?.body;
  return {
    operationId: operationId(route.method, path),
    summary: route.summary,
    description: ACCESS_TEXT[route.access],
    tags: [route.tag],
    'x-svc-access': route.access,
    security: route.access === 'open' ? [] : [{ token: [] }],
    parameters: [...pathParameters(path), ...queryParameters(route)],
    ...(body === undefined && route.consumes === undefined ? {} : { requestBody: { content: contentOf(route) } }),
    responses: {
      [route.method === 'DELETE' ? 204 : 200]: { description: 'Done' },
      default: { description: 'Failed', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } },
    },
  };
}

function contentOf(route: Route): object {
  const schema = route.schemas?.body === undefined ? {} : jsonSchema(route.schemas.body);
  return Object.fromEntries(['application/json', ...(route.consumes ?? [])].map((type) => [type, { schema }]));
}

function pathParameters(path: string): readonly object[] {
  return [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => ({
    name,
    in: 'path',
    required: true,
    schema: name === 'name' ? jsonSchema(SlotName) : { type: 'string' },
  }));
}

function queryParameters(route: Route): readonly object[] {
  const { properties, required } = objectSchema(route.schemas?.query);
  return Object.entries(properties).map(([name, schema]) => ({ name, in: 'query', required: required.includes(name), schema }));
}

function jsonSchema(schema: z.ZodType): JsonSchema {
  return z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any' });
}

function objectSchema(schema: z.ZodType | undefined) {
  const { properties, required } = schema === undefined ? {} : jsonSchema(schema);
  return { properties: isTable(properties) ? properties : {}, required: Array.isArray(required) ? required : [] };
}

/** For instance `getApiSlotsByName`. Unique, because method and path are. */
function operationId(method: RouteMethod, path: string): string {
  const words = path
    .replace(/\{([^}]+)\}/g, 'by-$1')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
