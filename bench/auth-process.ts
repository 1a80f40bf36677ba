/**
 * The gateways of `auth-gateways.ts` in a process of their own. One process is compiled once, and is interrupted alike in all of them, so that the CPU time of a request can be compared on a busy
 * machine as well. Arguments: the upstream's port, the files of tokens. Sends the ports, and answers each message with its CPU time in microseconds and the number of requests.
 */
import { startGateways } from './auth-gateways.ts';

const [upstream = '', ...files] = process.argv.slice(2);
const { ports, finished } = await startGateways(Number(upstream), files);
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send?.([user + system, finished()]);
});
process.on('disconnect', () => process.exit(0));
process.send?.(ports);
