/** Messages of JSON-RPC as clients may send them, well-formed or not. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ErrorCode } from '@modelcontextprotocol/sdk/types.js';
import { startAgentsWorld, type AgentsWorld } from './agents-world.ts';

let agents: AgentsWorld;
beforeEach(async () => void (agents = await startAgentsWorld({ SVC_MCP: 'on' })));
afterEach(async () => await agents.close());

describe('a message', () => {
  const send = async (body: unknown, headers: Readonly<Record<string, string>> = {}, method = 'POST') => {
    const sent = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const answer = await fetch(`${agents.world.url}/mcp`, { method, headers: sent, ...(method === 'POST' ? { body: text } : {}) });
    const read: { error?: { code?: unknown } } = JSON.parse((await answer.text()) || '{}');
    return [answer.status, read.error?.code];
  };
  const calling = (name: string, args: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } });

  test.each([
    ['an unknown tool', calling('rm', {}), ErrorCode.InvalidParams],
    ['an unknown method', { jsonrpc: '2.0', id: 1, method: 'rm' }, ErrorCode.MethodNotFound],
    ['a missing argument', calling('get_slot', {}), ErrorCode.InvalidParams],
    ['an argument of another type', calling('plan_change', { edits: 'all' }), ErrorCode.InvalidParams],
    ['an unknown argument', calling('list_slots', { all: true }), ErrorCode.InvalidParams],
    ['a path as a name', calling('get_slot', { name: '../tokens' }), ErrorCode.InvalidParams],
    ['most of a megabyte', calling('get_slot', { name: 'x'.repeat(1_000_000) }), ErrorCode.InvalidParams],
    ['arguments that are none', calling('get_slot', [1]), ErrorCode.InternalError],
  ])('with %s is answered with an error of JSON-RPC', async (_what, message, code) => {
    expect(await send(message)).toEqual([200, code]);
  });

  test.each([
    ['a batch', [calling('list_slots', {})], {}, 400, 'request.invalid'],
    ['more than a megabyte', calling('get_slot', { name: 'x'.repeat(1_100_000) }), {}, 413, 'request.too_large'],
    ['no JSON', '{', {}, 400, 'request.invalid'],
    ['deep nesting', `{"a":${'['.repeat(100_000)}`, {}, 400, 'request.invalid'],
    ['no JSON-RPC', { id: 1 }, {}, 400, 'request.invalid'],
    ['an unknown version of the protocol', calling('list_slots', {}), { 'mcp-protocol-version': '1999-01-01' }, 400, 'request.invalid'],
    ['a client that accepts no events', calling('list_slots', {}), { accept: 'application/json' }, 400, 'request.invalid'],
    ['text', 'hello', { 'content-type': 'text/plain' }, 415, 'request.media_type'],
    ['a page of another site', calling('list_slots', {}), { origin: 'https://evil.test' }, 403, 'request.cross_site'],
  ])('with %s is refused', async (_what, message, headers, status, code) => {
    expect(await send(message, headers)).toEqual([status, code]);
  });

  test('needs no session, and a notification has no answer', async () => {
    expect(await send(calling('list_slots', {}), { 'mcp-protocol-version': '2025-06-18' })).toEqual([200, undefined]);
    expect(await send({ jsonrpc: '2.0', method: 'notifications/initialized' })).toEqual([202, undefined]);
    for (const method of ['GET', 'DELETE']) expect(await send('', {}, method)).toEqual([405, 'route.method']);
  });

  test('finds no route without "SVC_MCP"', async () => {
    await agents.close();
    agents = await startAgentsWorld({});
    expect(await send(calling('list_slots', {}))).toEqual([404, 'route.not_found']);
    expect(await (await fetch(`${agents.world.url}/api/mcp/plans`)).json()).toEqual({ plans: [] });
    const approved = await fetch(`${agents.world.url}/api/mcp/plans/00000000/approve`, { method: 'POST' });
    expect([approved.status, await approved.text()]).toEqual([409, expect.stringContaining('SVC_MCP')]);
  });

  test('that fails in the service says nothing of the reason', async () => {
    Object.assign(agents.world.feed, { timeline: () => Promise.reject(new Error('/srv/secret is broken')) });
    const { client } = await agents.connect();
    await expect(client.callTool({ name: 'read_timeline', arguments: { name: 'primary' } })).rejects.toMatchObject({
      code: ErrorCode.InternalError,
      message: expect.stringMatching(/request id "[\w-]+"$/),
    });
  });
});
