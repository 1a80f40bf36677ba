/** The controller as a process of its own beside the cluster, as a pod would run it, and what it reports about itself. */
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { PodAccount } from './cluster-account.ts';
import { startServiceProcess, type ServiceProcess } from './service-process.ts';
import { waitUntil } from './wait-until.ts';

export interface ClusterService extends ServiceProcess {
  /** Resolves with the milliseconds from the start until the board had this many slots. */
  untilBoard(slots: number): Promise<number>;
  /** Number of requests to the API server so far, by `verb resource`. */
  requests(): Promise<ReadonlyMap<string, number>>;
  leads(): Promise<boolean>;
  /** Whether a slot is on its board; cheaper than its status with thousands of slots. */
  knows(slot: string): Promise<boolean>;
  /** Resolves when it is the leader; a new lease can be acquired only after some seconds. */
  untilLeads(): Promise<void>;
}

const TOOLBOXES = '[gguf.cpu]\nimage = "localhost/svc-toolbox-gguf-cpu:v1"\n';
const START_MS = 60_000;
/** What the explanation of a slot says before a pass has seen it. */
const NOT_ON_BOARD = 'has not seen a valid document';
/** For profiling: `SVC_BENCH_NODE_FLAGS="--cpu-prof --cpu-prof-dir=/tmp/profiles"`. */
const NODE_FLAGS = (process.env['SVC_BENCH_NODE_FLAGS'] ?? '').split(' ').filter((flag) => flag !== '');

/** `replica`: the pod name of this controller. `settings`: variables of the environment. */
export async function startClusterService(
  account: Pick<PodAccount, 'env'> & { readonly runner: readonly string[] },
  namespace: string,
  replica = 'bench',
  settings: Readonly<Record<string, string>> = {},
): Promise<ClusterService> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-'));
  await writeFile(path.join(dir, 'toolboxes.toml'), TOOLBOXES);
  const env = {
    HOME: dir,
    ...account.env,
    SVC_RUNTIME: 'kube',
    SVC_NAMESPACE: namespace,
    SVC_POD_NAME: replica,
    SVC_IMAGE: 'localhost/svc:bench',
    SVC_STATE_DIR: path.join(dir, 'state'),
    SVC_CONFIG_DIR: dir,
    SVC_LOG_LEVEL: 'error',
    ...settings,
  };
  const service = await startServiceProcess({ dir, env, runner: account.runner, nodeFlags: NODE_FLAGS, startMs: START_MS });
  const metrics = async (): Promise<string> => (await fetch(`${service.url}/api/metrics`)).text();
  const leads = async (): Promise<boolean> => /^svc_leads 1$/m.test(await metrics());
  return {
    ...service,
    leads,
    async knows(slot) {
      const answer = await fetch(`${service.url}/api/slots/${slot}/explain`);
      return answer.ok && !(await answer.text()).includes(NOT_ON_BOARD);
    },
    async untilBoard(slots) {
      let found = 0;
      const isComplete = async (): Promise<boolean> => (found = (await service.status()).length) >= slots;
      await waitUntil(isComplete, { withinMs: START_MS, everyMs: 2, failure: () => `The board has ${found} slots instead of ${slots}` });
      return performance.now() - service.startedAt;
    },
    async requests() {
      const counts = new Map<string, number>();
      for (const [, verb, resource, count] of (await metrics()).matchAll(
        /^svc_kube_requests_total\{verb="(.*?)",resource="(.*?)",code=".*?"\} (\d+)$/gm,
      )) {
        counts.set(`${verb} ${resource}`, (counts.get(`${verb} ${resource}`) ?? 0) + Number(count));
      }
      return counts;
    },
    async untilLeads() {
      await waitUntil(leads, { withinMs: START_MS, everyMs: 50, failure: () => 'The controller did not become the leader' });
    },
  };
}
