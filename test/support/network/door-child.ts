/** A process with a proxy with TLS in front of a plain server: `node door-child.ts URL BASE PORT`, where `BASE.pem` and `BASE.key` are its certificate. */
import { readFile } from 'node:fs/promises';
import { openDoor } from '../https-door.ts';

const [to = '', base = '', port = ''] = process.argv.slice(2);
const certFile = `${base}.pem`;
const [key, cert] = await Promise.all([readFile(`${base}.key`, 'utf8'), readFile(certFile, 'utf8')]);
await openDoor(to, { key, cert, certFile, fingerprint: '' }, undefined, { host: '0.0.0.0', port: Number(port) });
process.stdout.write('listening\n');
