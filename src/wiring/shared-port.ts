/**
 * Prepares a port that several processes listen on. The kernel gives it to any further process of the same user that asks for sharing, so it is first checked that nobody has it: two services
 * would take each other's connections without noticing.
 */
import { createServer } from 'node:net';
import { codeOf } from '../platform/error-text.ts';
import { sleep } from '../platform/pause.ts';
import type { Settings } from '../schema/settings/settings.ts';

type Address = Settings['SVC_LISTEN'];

/** Workers of a service that was killed notice it at once, unless the machine is busy. */
const FREED_WITHIN_MS = 3000;
const POLL_MS = 50;

/** Resolves when the address can be listened on. Rejects with the error of the system if it cannot be. */
export async function untilFree(address: Address): Promise<void> {
  const until = performance.now() + FREED_WITHIN_MS;
  for (;;) {
    try {
      await tryListen({ ...address, exclusive: true });
      return;
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE' || performance.now() >= until) throw error;
    }
    await sleep(POLL_MS);
  }
}

/** Whether several processes can listen on one port here: on Linux and FreeBSD, but not on macOS. */
export async function canSharePorts({ host }: Pick<Address, 'host'>): Promise<boolean> {
  return await tryListen({ host, port: 0, reusePort: true }).then(
    () => true,
    () => false,
  );
}

async function tryListen(options: Address & { readonly exclusive?: boolean; readonly reusePort?: boolean }): Promise<void> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options, resolve);
  });
  await new Promise<void>((resolve) => server.close(() => resolve()));
}
