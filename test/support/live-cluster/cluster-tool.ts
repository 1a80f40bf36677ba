/** Operations on a cluster that its API does not offer: SVC_TEST_CLUSTER names a tool with these verbs (see `scripts/test-cluster.sh`). */
import { execFile } from 'node:child_process';
import { describeWith } from '../require/describe-with.ts';
import { describeWithCluster, kubectl } from '../require/require-cluster.ts';
import { pause } from '../service.ts';

const TOOL = process.env['SVC_TEST_CLUSTER'] ?? '';
const REASON = 'SVC_TEST_CLUSTER names no tool that can stop the API server';
/** The API server starts within some seconds, and then connects to its aggregated servers. */
const STARTED_WITHIN_MS = 120_000;

export async function stopApiServer(): Promise<void> {
  await run('api-stop');
}

/** Resolves when it serves SlotSpecs again, possibly through an aggregated server. */
export async function startApiServer(): Promise<void> {
  await run('api-start');
  const deadline = Date.now() + STARTED_WITHIN_MS;
  for (;;) {
    const answer = await kubectl(['get', 'slotspecs', '--all-namespaces', '--request-timeout=5s']).catch((error: unknown) => error);
    if (typeof answer === 'string') return;
    if (Date.now() > deadline) throw answer;
    await pause(250);
  }
}

/** Removes all versions but the present one from the store. */
export async function compactStore(): Promise<void> {
  await run('compact');
}

/** Installs the CustomResourceDefinition of a file. */
export const crdInstall = async (file: string): Promise<void> => run('crd', file);

/** Deletes a CustomResourceDefinition, and with it all its objects. */
export const crdDelete = async (name: string): Promise<void> => run('crd-delete', name);

async function run(verb: 'api-stop' | 'api-start' | 'compact' | 'crd' | 'crd-delete', ...args: readonly string[]): Promise<void> {
  // The servers that the tool starts keep its output open, so the end of the output is not awaited.
  await new Promise<void>((resolve, reject) => {
    const child = execFile(TOOL, [verb, ...args], { timeout: 120_000 });
    child.once('error', reject);
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`"${TOOL} ${verb}" exited with code ${code}`))));
  });
}

/** Like `describeWithCluster`, for suites that need the tool. */
export function describeWithClusterTool(name: string, suite: () => void): void {
  if (TOOL !== '') describeWithCluster(name, suite);
  else describeWith({ isThere: false, word: 'cluster', what: 'has a tool that can stop the API server', reason: REASON }, name, suite);
}
