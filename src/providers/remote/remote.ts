/**
 * Provider for servers that run elsewhere: another service of this kind, Ollama, LM Studio, a cloud. Nothing is started
 * and nothing fetched. `host/remote/` asks them what they have, so that their probes always pass.
 */
import { ok } from '../../schema/words/failure.ts';
import { servesOf } from '../../schema/slot/provider-kinds.ts';
import { PASSING } from '../decide/judge-status.ts';
import { unusable, type Provider } from '../provider.ts';

/** What users write in `remote.url`; all paths are below it. */
const BASE = '/v1';

export const remote: Provider = {
  kind: 'remote',
  program: 'remote',
  containerPort: 8443,
  readyPath: `${BASE}/models`,
  fetchesModels: true,
  runsElsewhere: true,
  models: {
    kind: 'remote',
    recognize: () => undefined,
    contentsFrom: (stated) => stated,
    read: async ({ id }) => unusable(`The model "${id}" is not read: the remote has it`),
  },
  accepts: () => true,
  openProgram: () => ({ resolve: async () => ok(['remote']), describe: async () => ok({ name: 'a server on another machine' }) }),
  rankBackends: () => [{ backend: 'cpu' }],
  devices: () => [],
  buildEnv: () => ({}),
  // Never run: it makes the revision.
  startCmd: ({ spec }) => ['remote', JSON.stringify(spec.remote)],
  estimateMemory: () => ({ hostBytes: 0, deviceBytes: 0 }),
  capabilities: (_name, spec) => servesOf(spec),
  health: async () => PASSING,
  infer({ capability, path }, capabilities, slot) {
    const url = slot?.spec.remote?.url;
    if (!capabilities.includes(capability) || !path.startsWith(`${BASE}/`) || url === undefined)
      return {
        kind: 'refuse',
        message: `The remote does not serve "${path}": use another slot, or list what it serves in "remote.serves"`,
      };
    const asked = path === '/v1/rerankings' ? '/rerank' : path.slice(BASE.length);
    return { kind: 'forward', path: `${basePath(url)}${asked}` };
  },
};

function basePath(url: string): string {
  const path = new URL(url).pathname.replace(/\/+$/, '');
  return path === '' ? BASE : path;
}
