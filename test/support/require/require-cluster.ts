/** Suites that need a Kubernetes cluster: the one `KUBECONFIG` names. Without it they are skipped loudly, or fail where it is required. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describeWith } from './describe-with.ts';

const run = promisify(execFile);

export const KUBECONFIG = process.env['KUBECONFIG'] ?? '';

/** What `kubectl` prints. Throws with its own words when it fails; `input` is its standard input. */
export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  const child = run('kubectl', args, { maxBuffer: 64 * 1024 * 1024, timeout: 180_000 });
  if (input !== undefined) child.child.stdin?.end(input);
  return (await child).stdout;
}

const answers = async (): Promise<boolean> =>
  KUBECONFIG !== '' &&
  (await kubectl(['get', '--raw', '/readyz', '--request-timeout=5s']).then(
    () => true,
    () => false,
  ));

const CLUSTER_ANSWERS = await answers();
const REASON = 'no cluster answers that KUBECONFIG names';

export function describeWithCluster(name: string, suite: () => void): void {
  describeWith({ isThere: CLUSTER_ANSWERS, word: 'cluster', what: 'has a cluster', reason: REASON }, name, suite);
}
