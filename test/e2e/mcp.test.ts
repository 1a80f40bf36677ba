/** An agent with the official client operates a real service with authentication: it changes a slot, which then answers with another model. */
import { execFileSync } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { DEMO_SENTENCES } from '../../toolboxes/demo/demo-models.ts';
import { svcctl } from '../cli/run-svcctl.ts';
import { eventually } from '../support/eventually.ts';
import { connectAgent, type Agent } from '../support/mcp-client.ts';
import { ownEnvironment, startService, type Service } from '../support/service.ts';

const SLOT = '# Ask the owner before you change this\nbackend = "cpu"\n[model]\ndefault = "demo-fox"\n';
const RECORDER = `--import=${path.resolve('test/support/record-imports.mjs')}`;
let service: Service;
let agent: Agent;
let agentToken = '';
let adminToken = '';
const fileOf = async (): Promise<string> => await readFile(path.join(service.configDir, 'slots/primary.toml'), 'utf8');

function createToken(label: string): string {
  const args = ['src/cli/svcctl.mjs', 'token', 'create', '--label', label, '--scope', 'admin'];
  return execFileSync(process.execPath, args, { env: { ...ownEnvironment(), ...service.environment }, encoding: 'utf8' }).trim();
}
const run = async (...args: readonly string[]) => await svcctl(args, { env: { SVCCTL_SERVER: service.url, SVCCTL_TOKEN: adminToken } });

async function answer(): Promise<string> {
  const body = JSON.stringify({ model: 'primary', messages: [{ role: 'user', content: 'Hello' }] });
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${adminToken}` };
  const sent = await fetch(`${service.url}/v1/chat/completions`, { method: 'POST', headers, body });
  const read: { choices?: { message: { content: string } }[] } = JSON.parse(await sent.text());
  return (read.choices?.[0]?.message.content ?? '').trim();
}

beforeAll(async () => {
  const environment = { SVC_AUTH_ENABLED: '1', SVC_MCP: 'on', SVC_MCP_APPROVE: 'human', NODE_OPTIONS: RECORDER };
  service = await startService({ runtime: 'process', environment: { ...environment, TEST_IMPORTS_FILE: '/dev/null' } });
  [agentToken, adminToken] = [createToken('agent'), createToken('anna')];
  await service.save('primary', SLOT);
  await eventually('the slot answers', async () => (await answer()) === DEMO_SENTENCES['demo-fox'], 120_000);
  agent = await connectAgent(service.url, agentToken);
}, 240_000);
afterAll(async () => {
  await agent.close();
  await service.dispose();
}, 60_000);

describe('an agent', () => {
  test('finds out why a slot is as it is', async () => {
    expect(await agent.call('explain_slot', { name: 'primary' })).toMatchObject({
      name: 'primary',
      text: expect.stringContaining('served by'),
    });
    expect(await agent.call('check_fit', { model: 'demo-owl' })).toMatchObject({ fits: true });
    expect(await agent.call('list_requests', { slot: 'primary' })).toMatchObject({ requests: expect.any(Array) });
  });

  test('changes a slot by a plan and its token, after a person approved it', async () => {
    const plan = await agent.call('plan_change', { edits: [{ name: 'primary', set: { model: { default: 'demo-owl' } } }] });
    const { id, token } = { id: String(plan['id']), token: plan['token'] };
    expect(await agent.call('apply_plan', { token })).toMatchObject({ error: { code: 'plan.refused' } });
    expect((await run('mcp', 'pending')).out).toMatch(
      new RegExp(
        `^plan/${id} by "agent" .*waits for approval.*\\n {2}slot/primary updated\\n {4}model\\.default: "demo-fox" -> "demo-owl"\\n`,
      ),
    );
    expect(await fileOf()).toBe(SLOT);
    expect(await run('mcp', 'approve', id)).toMatchObject({ code: 0, out: `plan/${id} approved\n` });
    expect(await agent.call('apply_plan', { token })).toEqual({ dry_run: false, slots: [{ name: 'primary', result: 'updated' }] });
    expect(await fileOf()).toBe(SLOT.replace('demo-fox', 'demo-owl'));
    await eventually('the other model answers', async () => (await answer()) === DEMO_SENTENCES['demo-owl'], 120_000);
    expect(await agent.call('apply_plan', { token })).toMatchObject({
      error: { code: 'plan.refused', message: expect.stringContaining('used') },
    });
    const changes = JSON.parse((await run('audit', '-o', 'json')).out).changes.map(
      ({ who, message }: Record<string, string>) => `${who} ${message}`,
    );
    expect(changes).toEqual([
      `anna approved the plan "${id}" of "agent"`,
      'agent through MCP edited the slot "primary": changed model.default from "demo-fox" to "demo-owl"',
    ]);
  }, 180_000);

  test('loses the change if a person edits the slot meanwhile', async () => {
    const plan = await agent.call('plan_change', { edits: [{ name: 'primary', set: { priority: 3 } }] });
    await run('mcp', 'approve', String(plan['id']));
    const edited = `${await fileOf()}# Mine\n`;
    await service.save('primary', edited);
    expect(await agent.call('apply_plan', { token: plan['token'] })).toMatchObject({
      error: { code: 'plan.refused', message: expect.stringContaining('Changed since the plan was made: "primary"') },
    });
    expect(await fileOf()).toBe(edited);
  });

  test('loses a plan that a person rejects, and with its token all access', async () => {
    const plan = await agent.call('plan_change', { edits: [{ name: 'primary', set: { priority: 3 } }] });
    expect(await run('mcp', 'reject', String(plan['id']))).toMatchObject({ code: 0 });
    expect(await agent.call('apply_plan', { token: plan['token'] })).toMatchObject({
      error: { message: expect.stringContaining('rejected') },
    });
    expect((await run('mcp', 'pending')).out).not.toContain(String(plan['id']));
    await run('token', 'revoke', /svc_([0-9a-f]{8})/.exec(agentToken)?.[1] ?? '');
    await expect(agent.client.listTools()).rejects.toThrow('auth.invalid');
  });
});

test.each(['off', 'on'])(
  'with "SVC_MCP" %s, the SDK is loaded with the first message or not at all, and no web framework of it',
  async (use) => {
    const file = path.join(service.dir, `imports-${use}`);
    const loaded = async (): Promise<readonly string[]> =>
      [...(await readFile(file, 'utf8')).matchAll(/node_modules\/(fastify|express|hono|@hono|@modelcontextprotocol)\//g)].map(
        ([, name]) => name ?? '',
      );
    const other = await startService({
      runtime: 'process',
      environment: { SVC_MCP: use, NODE_OPTIONS: RECORDER, TEST_IMPORTS_FILE: file },
    });
    try {
      expect([...new Set(await loaded())]).toEqual(['fastify']);
      const sent = connectAgent(other.url);
      if (use === 'off') await expect(sent).rejects.toThrow('route.not_found');
      else await (await sent).close();
      expect([...new Set(await loaded())]).toEqual(['fastify', ...(use === 'on' ? ['@modelcontextprotocol'] : [])]);
    } finally {
      await other.dispose();
    }
  },
  120_000,
);
