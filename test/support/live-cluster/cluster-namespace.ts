/** A namespace of the real cluster, for controllers that run outside of it, and what users do there with kubectl. */
import { isReady, type SlotResourceView } from './cluster.ts';
import { kubectl as run } from '../require/require-cluster.ts';
import { pause } from '../service.ts';

export interface ClusterNamespace {
  readonly name: string;
  /** `kubectl -n <namespace> …`. */
  kubectl(args: readonly string[], input?: string): Promise<string>;
  apply(manifest: string): Promise<string>;
  patch(slot: string, spec: object): Promise<string>;
  slot(name: string): Promise<SlotResourceView | undefined>;
  /** Polls until the predicate holds; fails with the slot and the result of `story`. */
  until(name: string, what: string, holds: (slot: SlotResourceView) => boolean, timeoutMs?: number): Promise<SlotResourceView>;
  untilReady(names: readonly string[], timeoutMs?: number): Promise<void>;
  dispose(): Promise<void>;
}

/** Creates a new one for each run. `story` returns what helps to understand a failure, such as the output of the controllers. */
export async function createClusterNamespace(suite: string, story: () => string = () => ''): Promise<ClusterNamespace> {
  const name = `svc-failures-${suite}-${process.pid}`;
  const kubectl = async (args: readonly string[], input?: string) => run(['--namespace', name, ...args], input);
  await run(['create', 'namespace', name]);
  // Pods created before the service account are rejected, and retried less and less often.
  while ((await kubectl(['get', 'serviceaccounts', '--output', 'name'])) === '') await pause(100);

  async function slot(slotName: string): Promise<SlotResourceView | undefined> {
    const text = await kubectl(['get', 'slotspec', slotName, '--ignore-not-found', '--output', 'json']);
    if (text === '') return undefined;
    const seen: SlotResourceView = JSON.parse(text);
    return seen;
  }

  const space: ClusterNamespace = {
    name,
    kubectl,
    slot,
    apply: async (manifest) => kubectl(['apply', '--validate=false', '--filename', '-'], manifest),
    patch: async (slotName, spec) => kubectl(['patch', 'slot', slotName, '--type=merge', '--patch', JSON.stringify({ spec })]),
    async until(slotName, what, holds, timeoutMs = 90_000) {
      const deadline = Date.now() + timeoutMs;
      for (;;) {
        const seen = await slot(slotName);
        if (seen !== undefined && holds(seen)) return seen;
        if (Date.now() > deadline) {
          const objects = await kubectl(['get', 'slotspecs,deployments,pods', '--show-labels']);
          throw new Error(`"${slotName}" did not become ${what}: ${JSON.stringify(seen?.status)}\n${objects}\n${story().slice(-6000)}`);
        }
        await pause(100);
      }
    },
    async untilReady(names, timeoutMs) {
      for (const each of names) await space.until(each, 'ready', isReady, timeoutMs);
    },
    async dispose() {
      await run(['delete', 'namespace', name, '--ignore-not-found', '--wait=false']);
    },
  };
  return space;
}
