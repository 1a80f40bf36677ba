/** The reference page of all HTTP routes, from the OpenAPI document that the service publishes. Pure. */
import { z } from 'zod';
import { createRealtime } from '../../src/api/v1/realtime/realtime.ts';
import { createOllamaRoutes, type OllamaDeps } from '../../src/api/v1/ollama-routes.ts';
import { createV1Routes } from '../../src/api/v1/v1-routes.ts';
import type { ManageDeps } from '../../src/api/manage/manage-deps.ts';
import { openApiDocument } from '../../src/api/openapi/document.ts';
import { isForModelPort, type PortFacts } from '../../src/api/server/decide/decide-site.ts';
import { createRoutes } from '../../src/api/routes.ts';
import { ACCESS_CLASSES, GRANTS, SCOPES, type Access } from '../../src/schema/words/access.ts';
import { isTable } from '../../src/schema/words/key-case.ts';
import type { Json } from './map-schema.ts';
import { code, page, table } from './publish-reference.ts';

const KIB = 1024;
const MIB = KIB * KIB;

const Content = z.record(z.string(), z.object({ schema: z.looseObject({}) }));
const Answer = z.looseObject({ $ref: z.string().optional(), description: z.string().optional(), content: Content.optional() });
const Operation = z.object({
  summary: z.string(),
  tags: z.tuple([z.string()]),
  'x-svc-access': z.string(),
  'x-svc-body-limit': z.union([z.string(), z.number()]),
  parameters: z.array(z.object({ name: z.string(), in: z.string(), required: z.boolean() })),
  requestBody: z.object({ content: Content }).optional(),
  responses: z.record(z.string(), Answer),
});
const Document = z.object({
  tags: z.array(z.object({ name: z.string(), description: z.string() })),
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  components: z.object({ responses: z.record(z.string(), Answer) }),
});
type Operation = z.output<typeof Operation> & { readonly route: string; readonly codes: readonly string[] };

/** The document of a service, whose handlers never run here: the table itself reads only these properties. */
export function publishedDocument(): z.output<typeof Document> {
  const deps: ManageDeps & Parameters<typeof createV1Routes>[0] & OllamaDeps & Parameters<typeof createRealtime>[0] = JSON.parse(
    '{"manage":{},"metrics":{"contentType":"text/plain"},"images":{},"tokens":{},"settings":{},"startedAt":0,"upstream":true}',
  );
  return Document.parse(
    openApiDocument(createRoutes([...createV1Routes(deps), ...createOllamaRoutes(deps), createRealtime(deps).route], deps), ''),
  );
}

export function httpReference({ tags, paths, components }: z.output<typeof Document> = publishedDocument()): string {
  const operations: readonly Operation[] = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      route: `${method.toUpperCase()} ${path}`,
      codes: Object.values(operation.responses).flatMap((answer) => codesIn(resolved(answer, components.responses))),
    })),
  );
  const groups = groupsOf(operations);
  return page('HTTP routes', [
    'Every route of the service. A running service publishes the same as OpenAPI 3.1 at `/api/openapi.json`, with all fields of bodies and answers.',
    '',
    ...table(
      ['Access', 'Scopes of tokens that may use the route'],
      ACCESS_CLASSES.map((access) => [access, scopesOf(access)]),
    ),
    '',
    'Without authentication, everyone may use every route: see [security.md](../security.md#authentication).',
    '',
    'The column "Ports" says where a route answers if `SVC_MANAGEMENT_LISTEN` is set: on both ports, or on that for management only ([security.md](../security.md#a-port-for-management)).',
    '',
    'The column "Takes" names the largest body of each route. Other routes ignore a body, and refuse one of more than 4 KiB (open) or 1 MiB.',
    '',
    'Errors have one shape, described in [errors.md](errors.md). The tables below leave out the codes of this table. A route that models answer also passes on their errors.',
    '',
    ...table(
      ['Routes', 'Error codes of all of them'],
      groups.map(({ name, codes }) => [name, list(codes)]),
    ),
    ...tags.flatMap(({ name, description }) => [
      '',
      `## ${name}`,
      ...(description === '' ? [] : ['', description]),
      '',
      ...table(
        ['Route', 'Access', 'Ports', 'What it does', 'Takes', 'Answers', 'Error codes'],
        operations.filter((operation) => operation.tags.includes(name)).map((operation) => rowOf(operation, groups)),
      ),
    ]),
    '',
    'Routes under `/api` and `/v1` answer other methods with 405 and an `Allow` header. The pages of the [dashboard](../dashboard.md) are at `/`.',
  ]);
}

interface Group {
  readonly name: string;
  readonly has: (operation: Operation) => boolean;
  /** Codes that every route of the group can answer, without those of the groups before. */
  readonly codes: readonly string[];
}

function groupsOf(operations: readonly Operation[]): readonly Group[] {
  const kinds: readonly Omit<Group, 'codes'>[] = [
    { name: 'All', has: () => true },
    { name: 'All but liveness and readiness', has: ({ route }) => !route.includes('/health/') },
    { name: 'Those whose access is not open', has: (operation) => operation['x-svc-access'] !== 'open' },
    { name: 'Those with another method than GET', has: ({ route }) => !route.startsWith('GET ') },
    { name: 'Those that models answer', has: ({ responses }) => 'default' in responses },
  ];
  const groups: Group[] = [];
  for (const { name, has } of kinds) {
    const members = operations.filter(has);
    const known = groups.flatMap(({ codes }) => codes);
    const common = members[0]?.codes.filter((found) => !known.includes(found) && members.every(({ codes }) => codes.includes(found))) ?? [];
    groups.push({ name, has, codes: common });
  }
  return groups;
}

function scopesOf(access: Access): string {
  const scopes = SCOPES.filter((scope) => GRANTS[scope].includes(access));
  return scopes.length === 0 ? 'everyone' : scopes.map(code).join(', ');
}

function rowOf(operation: Operation, groups: readonly Group[]): readonly string[] {
  const { route, summary, parameters, requestBody, responses } = operation;
  const covered = groups.filter(({ has }) => has(operation)).flatMap(({ codes }) => codes);
  const takes = parameters.filter(({ in: place }) => place !== 'path').map((given) => `${given.in} ${code(given.name)}`);
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema }]) => `${type === 'application/json' ? '' : `${type}: `}${shapeOf(schema)}`,
  );
  const most = bodies.length === 0 ? [] : [`at most ${limitOf(operation['x-svc-body-limit'])}`];
  return [
    code(route),
    operation['x-svc-access'],
    isForModelPort(portFactsOf(operation)) ? 'both' : 'management',
    summary,
    [...bodies, ...most, ...takes].join('<br>'),
    Object.entries(responses)
      .flatMap(([status, answer]) => (/^[1-3]/.test(status) ? [answerOf(status, answer)] : []))
      .join('<br>'),
    list(operation.codes.filter((known) => !covered.includes(known))),
  ];
}

function portFactsOf({ tags: [tag], 'x-svc-access': access, route }: Operation): PortFacts {
  const found = ACCESS_CLASSES.find((each) => each === access);
  if (found === undefined) throw new Error(`The route "${route}" has the unknown access "${access}"`);
  return { tag, access: found, ...(route.includes('/health/') ? { anySite: true } : {}) };
}

function limitOf(limit: string | number): string {
  if (typeof limit === 'string') return code(limit);
  if (limit % MIB === 0) return `${limit / MIB} MiB`;
  return limit % KIB === 0 ? `${limit / KIB} KiB` : `${limit} bytes`;
}

function answerOf(status: string, { description = '', content = {} }: z.output<typeof Answer>): string {
  const bodies = Object.entries(content).map(([type, { schema }]) => (type === 'application/json' ? shapeOf(schema) : code(type)));
  return `${status} ${bodies.length === 0 ? description : bodies.join(' or ')}`;
}

/** The name of a schema, or the keys of one without a name; those in brackets may be left out. */
function shapeOf(schema: Json): string {
  if (typeof schema['$ref'] === 'string') return code(schema['$ref'].split('/').at(-1) ?? '');
  if (Array.isArray(schema['anyOf'])) return schema['anyOf'].filter(isTable).map(shapeOf).join(' or ');
  if (schema['type'] === 'array') return `list of ${isTable(schema['items']) ? shapeOf(schema['items']) : 'values'}`;
  const keys = isTable(schema['properties']) ? Object.keys(schema['properties']) : [];
  if (keys.length === 0) return typeof schema['type'] === 'string' ? schema['type'] : 'JSON';
  const required = Array.isArray(schema['required']) ? schema['required'] : [];
  return code(`{${keys.map((key) => (required.includes(key) ? key : `[${key}]`)).join(', ')}}`);
}

function resolved(answer: z.output<typeof Answer>, named: Readonly<Record<string, z.output<typeof Answer>>>): unknown {
  return answer.$ref === undefined ? answer.content : named[answer.$ref.split('/').at(-1) ?? '']?.content;
}

/** Every value that a schema allows for "code". */
function codesIn(schema: unknown): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap(codesIn);
  if (!isTable(schema)) return [];
  return Object.entries(schema).flatMap(([key, inner]) =>
    key === 'code' && isTable(inner) && Array.isArray(inner['enum']) ? inner['enum'].map(String) : codesIn(inner),
  );
}

const list = (codes: readonly string[]): string => codes.map(code).join(', ');
