/** Renders the route table, with the schemas that its handlers are typed with, as an OpenAPI 3.1 document. */
import { z } from 'zod';
import { isTable } from '../../schema/words/key-case.ts';
import type { Access } from '../../schema/words/access.ts';
import type { DocumentedRoute, RouteMethod } from '../server/define-route.ts';
import { dialectOf } from '../../gateway/route/decide/inference-paths.ts';
import { errorAnswersOf, errorResponses, headersOfDialect, headersOf, mapValues, pascalCase } from './error-answers.ts';
import * as manage from '../../schema/status/answers.ts';
import * as profiles from '../../schema/status/resource-answers.ts';
import * as system from '../manage/system-answers.ts';
import * as inference from '../v1/inference-schemas.ts';

const ACCESS_TEXT: Readonly<Record<Access, string>> = {
  open: 'Needs no credential.',
  any: 'Needs any scope.',
  read: 'Needs scope "read-only", "all" or "admin".',
  v1: 'Needs scope "v1-only", "all" or "admin".',
  all: 'Needs scope "all" or "admin".',
  admin: 'Needs scope "admin".',
};

const TAGS: Readonly<Record<string, string>> = {
  inference: 'Requests that models answer. The gateway passes bodies on unchanged.',
  models: 'Models in OpenAI’s format.',
  slots: 'Slots: their documents, status, logs and history.',
  changes: 'Changes to several slots at once.',
  captures: 'Bodies of a few requests, recorded encrypted.',
  source: 'The repository that declares the configuration.',
  events: 'Events of slots as they happen.',
  profiles: 'Named sets of slots, saved and switched as a whole.',
  inventory: 'Models, providers, downloads and hardware.',
  system: 'Health, status, metrics and this document.',
  auth: 'How callers authenticate.',
};

export function openApiDocument(routes: readonly DocumentedRoute[], version: string) {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replace(/:([A-Za-z_]+)/g, '{$1}').replace(/\*$/, '{rest}');
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route, path);
  }
  const used = new Set(routes.map(({ tag }) => tag));
  return {
    openapi: '3.1.0',
    info: {
      title: 'svc',
      version,
      description: 'An OpenAI-compatible inference gateway and the management API of its slots',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/' }],
    tags: [...used].map((name) => ({ name, description: TAGS[name] ?? '' })),
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer', description: '`svc_<id>.<secret>`; required if authentication is on' } },
      schemas: namedSchemas(),
      responses: errorResponses(routes),
    },
  };
}

function operation(route: DocumentedRoute, path: string): object {
  const body = schemaOf(route, 'body');
  return {
    operationId: operationId(route.method, path),
    summary: route.summary,
    description: ACCESS_TEXT[route.access],
    tags: [route.tag],
    'x-svc-access': route.access,
    'x-svc-body-limit': route.bodyLimit,
    security: route.access === 'open' ? [] : [{ token: [] }],
    parameters: [...parameters(route, 'params', 'path'), ...parameters(route, 'query', 'query'), ...parameters(route, 'headers', 'header')],
    ...(body === undefined ? {} : { requestBody: requestBody(route, body) }),
    responses: { ...answersOf(route), ...errorAnswersOf(route) },
  };
}

type Part = 'params' | 'query' | 'headers' | 'body';

function schemaOf({ input }: DocumentedRoute, part: Part): z.ZodType | undefined {
  const schema: unknown = input.shape[part];
  return schema instanceof z.ZodType ? schema : undefined;
}

function requestBody(route: DocumentedRoute, body: z.ZodType): object {
  const schema = requestSchema(body);
  const types = route.multipart === true ? ['multipart/form-data'] : ['application/json', ...(route.consumes ?? [])];
  const content = Object.fromEntries(types.map((type) => [type, { schema }]));
  return { required: !body.safeParse({}).success, content };
}

function parameters(route: DocumentedRoute, part: Part, place: 'path' | 'query' | 'header'): readonly object[] {
  const schema = schemaOf(route, part);
  if (schema === undefined) return [];
  const { properties, required } = requestSchema(schema);
  const needed = Array.isArray(required) ? required : [];
  return Object.entries(isTable(properties) ? properties : {}).map(([key, property]) => {
    const { description, ...rest } = isTable(property) ? property : {};
    const name = key === '*' ? 'rest' : place === 'header' ? headerName(key) : key;
    const text = description === undefined ? {} : { description };
    return { name, in: place, required: place === 'path' || needed.includes(key), ...text, schema: rest };
  });
}

function answersOf({ answers, path }: DocumentedRoute): Readonly<Record<string, object>> {
  return Object.fromEntries(
    Object.entries(answers).map(([status, answer]) => {
      const { description, headers = {} } = answer;
      const shared = { description, headers: headersOf({ ...headers, ...headersOfDialect(dialectOf(path)) }) };
      switch (answer.kind) {
        case 'json':
          return [status, { ...shared, content: { 'application/json': { schema: answerSchema(answer.schema) } } }];
        case 'text':
          return [status, { ...shared, content: textContent([answer.mediaType, ...(answer.otherTypes ?? [])]) }];
        case 'passed':
          return [status, { ...shared, content: mapValues(answer.content, (schema) => ({ schema: answerSchema(schema) })) }];
        case 'empty':
          return [status, shared];
        default:
          return answer satisfies never;
      }
    }),
  );
}

const textContent = (types: readonly string[]) => Object.fromEntries(types.map((type) => [bareType(type), { schema: { type: 'string' } }]));

const bareType = (mediaType: string): string => mediaType.split(';', 1)[0] ?? mediaType;

/** `if-match` → `If-Match` */
const headerName = (key: string): string => key.replace(/(^|-)[a-z]/g, (start) => start.toUpperCase());

/** `getApiSlotsByName`. Unique, because method and path are. */
const operationId = (method: RouteMethod, path: string): string => method.toLowerCase() + pascalCase(path.replace(/\{([^}]+)\}/g, 'by-$1'));

/** The named schemas of the OpenAPI document: every schema of an answer that has a name in the program keeps it. */

type JsonSchema = Readonly<Record<string, unknown>>;

const ANSWERS: Readonly<Record<string, z.ZodType>> = { ...system, ...manage, ...profiles, ...inference.ANSWERS };
const REQUESTS: Readonly<Record<string, z.ZodType>> = inference.REQUESTS;
const HERE = '#/components/schemas/';

const namedSchemas = (): Readonly<Record<string, JsonSchema>> => ({ ...convert(ANSWERS, 'output'), ...convert(REQUESTS, 'input') });

const answerSchema = (schema: z.ZodType): JsonSchema => reference(ANSWERS, schema) ?? inline(schema, 'output');

/** Like `answerSchema`, for requests: fields with a default are optional. */
const requestSchema = (schema: z.ZodType): JsonSchema => reference(REQUESTS, schema) ?? inline(schema, 'input');

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

/** A schema that stands alone, and is one of draft 7 as well as of draft 2020-12. */
export const inline = (schema: z.ZodType, io: Direction): JsonSchema => bare(z.toJSONSchema(schema, optionsOf(io)));

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
