/** The world of the management API with one slot, and agents of every scope. */
import type { Authorize } from '../../../src/auth/check-token.ts';
import { decideScope } from '../../../src/auth/decide/decide-access.ts';
import { SCOPES } from '../../../src/schema/words/access.ts';
import { SlotName } from '../../../src/schema/words/names.ts';
import { connectAgent, type Agent } from '../../support/mcp-client.ts';
import { startWorld, type World } from '../manage/world.ts';

export const PRIMARY = SlotName.parse('primary');

export interface AgentsWorld {
  readonly world: World;
  connect(token?: string): Promise<Agent>;
  close(): Promise<void>;
}

/** A token is the name of its scope, with or without more. */
const authorize: Authorize = (access, { rawHeaders }) => {
  const at = rawHeaders.findIndex((name) => name.toLowerCase() === 'authorization');
  const token = at < 0 ? 'admin' : (rawHeaders[at + 1] ?? '').replace('Bearer ', '');
  const scope = SCOPES.find((each) => token.startsWith(each)) ?? 'read-only';
  return access === 'open' ? { ok: true } : decideScope(access, { key: `token:${token}`, identity: token, scope });
};

export async function startAgentsWorld(env: Readonly<Record<string, string>>): Promise<AgentsWorld> {
  const agents: Agent[] = [];
  const world = await startWorld({ authorize, env });
  world.save(PRIMARY, '# A comment\n[model]\ndefault = "a"\n');
  await world.idle();
  return {
    world,
    async connect(token = 'admin') {
      const agent = await connectAgent(world.url, token);
      agents.push(agent);
      return agent;
    },
    async close() {
      for (const agent of agents.splice(0)) await agent.close();
      await world.close();
    },
  };
}
