/** Watches a slot with kubectl, as an autoscaler sees it: every state of its scale, and whether it was ready. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { pause } from '../service.ts';

export interface SlotMoment {
  readonly wanted: number;
  readonly present: number;
  readonly selector: string;
  readonly ready: boolean;
}

export interface SlotHistory {
  /** Ends the watch, and returns what it saw, the first state included. */
  end(): Promise<readonly SlotMoment[]>;
}

const PATH = '{.spec.replicas} {.status.replicas} {.status.selector} {.status.conditions[?(@.type=="Ready")].status}{"\\n"}';

export async function watchSlot(namespace: string, slot: string): Promise<SlotHistory> {
  const args = ['--namespace', namespace, 'get', 'slotspecs', slot, '--watch', '--output', `jsonpath=${PATH}`];
  const child = spawn('kubectl', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const moments: SlotMoment[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [wanted, present, selector = '', ready] = line.split(' ');
    moments.push({ wanted: Number(wanted), present: Number(present), selector, ready: ready === 'True' });
  });
  // Wait until the watch has begun, or it misses the first changes.
  await pause(500);
  return {
    async end() {
      // The last change may still be on its way.
      await pause(500);
      child.kill('SIGTERM');
      await ended;
      return moments;
    },
  };
}
