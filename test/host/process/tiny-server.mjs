// tiny-server --host HOST --port PORT [--ignore-term]: the same as workload-image/tiny-server.pl, for workloads that are processes.
import { createServer } from 'node:http';
import { parseArgs } from 'node:util';

const { values } = parseArgs({ options: { host: { type: 'string' }, port: { type: 'string' }, 'ignore-term': { type: 'boolean' } } });
process.on('SIGTERM', () => {
  if (values['ignore-term'] !== true) process.exit(0);
});
process.stdout.write('to stdout\n');
process.stderr.write('to stderr\n');
const server = createServer((request, response) => {
  const env = Object.entries(process.env).map(([name, value]) => `${name}=${value}\n`);
  const code = /^\/exit\/(\d+)$/.exec(request.url)?.[1];
  response.setHeader('connection', 'close');
  response.end(request.url === '/env' ? env.join('') : 'hello');
  if (code !== undefined) response.on('close', () => process.exit(Number(code)));
});
server.listen(Number(values.port), values.host ?? '127.0.0.1', () => process.stdout.write('listening\n'));
