/** Watches the Deployments of a namespace with kubectl, so that short-lived duplicates are found too. */
import { execFile, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { pause } from '../service.ts';

export interface DeploymentHistory {
  /** One line for each time there were two Deployments of one slot and revision, or three of one slot. */
  readonly duplicates: readonly string[];
  /** Number of Deployments created so far. */
  created(): number;
  /** Lists every event with its time, to analyse a failure. */
  describe(): string;
  stop(): Promise<void>;
}

const PATH = String.raw`{.type} {.object.metadata.uid} {.object.metadata.labels.inference\.svc\.dev/slot} {.object.metadata.labels.inference\.svc\.dev/revision}{"\n"}`;

export async function watchDeployments(namespace: string): Promise<DeploymentHistory> {
  const args = ['--namespace', namespace, 'get', 'deployments', '--selector', 'inference.svc.dev/slot'];
  const present = (await promisify(execFile)('kubectl', [...args, '--output', 'name'])).stdout
    .split('\n')
    .filter((name) => name !== '').length;
  const child = spawn('kubectl', [...args, '--watch', '--output-watch-events', '--output', `jsonpath=${PATH}`], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const living = new Map<string, { readonly slot: string; readonly revision: string }>();
  const seen = new Set<string>();
  const duplicates: string[] = [];
  const events: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [type, uid = '', slot = '', revision = ''] = line.split(' ');
    if (type === 'DELETED') living.delete(uid);
    else if (!seen.has(uid)) {
      const others = [...living.values()].filter((other) => other.slot === slot);
      if (others.some((other) => other.revision === revision)) duplicates.push(`"${slot}" has another Deployment of revision ${revision}`);
      if (others.length > 1) duplicates.push(`"${slot}" has a third Deployment`);
      living.set(uid, { slot, revision });
    }
    if (type === 'DELETED' || !seen.has(uid)) events.push(`${new Date().toISOString()} ${line}`);
    seen.add(uid);
  });
  // Wait until the watch has begun, or it misses the first events. It begins with what is there, of which something may have been deleted meanwhile.
  await pause(500);
  for (let attempt = 0; attempt < 40 && seen.size < present; attempt += 1) await pause(250);
  return {
    duplicates,
    created: () => seen.size,
    describe: () => events.join('\n'),
    async stop() {
      child.kill('SIGTERM');
      await ended;
    },
  };
}
