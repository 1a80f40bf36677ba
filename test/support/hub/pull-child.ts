/** A process that downloads one file, to be killed at any moment: `node pull-child.ts URL SHA256 SIZE TARGET CONNECTIONS`. Prints a line when it is done. */
import { isAbsolute } from 'node:path';
import { createDiskRoom } from '../../../src/models/download/disk-room.ts';
import { pullFile } from '../../../src/models/download/pull-file.ts';
import { UNLIMITED } from '../../../src/platform/throttle.ts';

const [url = '', sha256 = '', size = '', target = '', connections = ''] = process.argv.slice(2);
// A relative target, or none, would leave ".part" and ".part.journal" in the working directory.
if (!isAbsolute(target) || connections === '')
  throw new Error(`Wrong arguments: give URL SHA256 SIZE TARGET CONNECTIONS, with an absolute target instead of "${target}"`);
const limits = { connections: Number(connections), throttle: UNLIMITED, room: createDiskRoom() };
const patience = { attempts: 5, pauseMs: 50 };
process.stdout.write('begin\n');
const file = { url, sha256, sizeBytes: Number(size), target, limits, patience, onProgress: () => {} };
const result = await pullFile(file, new AbortController().signal);
process.stdout.write(`${result.ok ? 'complete' : result.failure.message}\n`);
process.exitCode = result.ok ? 0 : 1;
