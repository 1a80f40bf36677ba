import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import { showTo } from '../../../src/auth/decide/decide-access.ts';
import { isTable } from '../../../src/schema/words/key-case.ts';
import { startWorld, type World } from '../manage/world.ts';
import { documentedPath } from './documented-path.ts';

let world: World;
let text: string;
let operations: readonly (readonly [name: string, operation: Readonly<Record<string, unknown>>])[];

beforeAll(async () => {
  world = await startWorld({ v1: true });
  text = await (await fetch(`${world.url}/api/openapi.json`)).text();
  const { paths }: { paths: Record<string, Record<string, Record<string, unknown>>> } = JSON.parse(text);
  operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const),
  );
});
afterAll(() => world.close());

describe('openapi.json', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(JSON.parse(text))).toEqual({ valid: true });
    expect(validator.version).toBe('3.1');
  });

  test('has exactly the operations of the route table, each with its own id', () => {
    expect(operations.map(([name]) => name).toSorted()).toEqual(
      world.routes.map((route) => `${route.method} ${documentedPath(route)}`).toSorted(),
    );
    expect(new Set(operations.map(([, { operationId }]) => operationId)).size).toBe(operations.length);
  });

  test('describes every tag', () => {
    const { tags }: { tags: readonly { readonly name: string; readonly description: string }[] } = JSON.parse(text);
    expect(tags.filter(({ description }) => description === '').map(({ name }) => name)).toEqual([]);
    expect(tags.length).toBeGreaterThan(5);
  });

  test('is the same for every scope, since it says nothing about the host', () => {
    const document: unknown = JSON.parse(text);
    expect(showTo(undefined, document)).toEqual(document);
  });

  test('has no reference that leads nowhere', () => {
    const document: unknown = JSON.parse(text);
    const references = [...text.matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, pointer = '']) => pointer.split('/'));
    expect(references.length).toBeGreaterThan(100);
    const leads = (path: readonly string[]): boolean =>
      path.reduce<unknown>((inner, key) => (isTable(inner) ? inner[key] : undefined), document) !== undefined;
    expect(references.filter((path) => !leads(path))).toEqual([]);
  });

  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'])('describes the successful answers of every %s, and the errors', (method) => {
    for (const [name, { responses }] of operations.filter(([operation]) => operation.startsWith(`${method} `))) {
      const statuses = Object.keys(Object(responses));
      const success = statuses.filter((status) => status.startsWith('2') || status === '101');
      expect([name, success.length]).not.toEqual([name, 0]);
      for (const status of success) {
        const { content }: { content?: Record<string, { schema?: object }> } = Object(responses)[status];
        if (status === '204' || status === '101') expect(content).toBeUndefined();
        else
          expect(Object.values(content ?? {}).map(({ schema }) => Object.keys(schema ?? {}).length > 0)).toEqual(
            Array(Object.keys(content ?? {}).length || 1).fill(true),
          );
      }
      expect(statuses).toEqual(expect.arrayContaining(['400', '500']));
    }
  });

  test('describes the body of every request that has one', () => {
    const withBody = operations.filter(([, { requestBody }]) => requestBody !== undefined).map(([name]) => name);
    const expected = world.routes.filter(({ input }) => input.shape['body'] !== undefined);
    expect(withBody.toSorted()).toEqual(expected.map((route) => `${route.method} ${documentedPath(route)}`).toSorted());
    expect(withBody).toEqual(expect.arrayContaining(['PUT /api/slots/{name}', 'POST /api/apply', 'POST /v1/chat/completions']));
  });
});
