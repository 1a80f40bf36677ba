/**
 * Downloads one file as the service does: `node model-pull-process.ts URL SHA256 SIZE TARGET [KILLED_AT]`. Prints milliseconds, and the memory that it took in bytes. With `KILLED_AT`,
 * it kills itself once it has that many bytes.
 */
import { createDiskRoom } from '../src/models/download/disk-room.ts';
import { pullFile } from '../src/models/download/pull-file.ts';
import { UNLIMITED } from '../src/platform/throttle.ts';

const [url = '', sha256 = '', size = '', target = '', killedAt = 'Infinity'] = process.argv.slice(2);
const before = process.memoryUsage.rss();
const began = performance.now();
const limits = { connections: 4, throttle: UNLIMITED, room: createDiskRoom() };
const onProgress = ({ doneBytes }: { readonly doneBytes: number }): void => {
  if (doneBytes >= Number(killedAt)) process.kill(process.pid, 'SIGKILL');
};
const result = await pullFile({ url, sha256, sizeBytes: Number(size), target, limits, onProgress }, new AbortController().signal);
if (!result.ok) throw new Error(result.failure.message);
process.stdout.write(`${performance.now() - began} ${1024 * process.resourceUsage().maxRSS - before}\n`);
