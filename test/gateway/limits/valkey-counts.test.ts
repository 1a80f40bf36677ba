/** Servers as they should not be: wrong addresses, passwords and answers. The reason is said, without the password. */
import { spawnSync } from 'node:child_process';
import { createServer, type Server } from 'node:net';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { createValkeyCounts, type ValkeyCounts } from '../../../src/gateway/limits/valkey-counts.ts';
import type { CountReport } from '../../../src/gateway/limits/counting-script.ts';
import { createClock } from '../../../src/platform/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { freePort } from '../../support/free-port.ts';
import { describeWithValkey, startValkey, type ValkeyServer } from '../../support/valkey/valkey-server.ts';

const ONE: CountReport = {
  counts: [[], [], [], []],
  need: [1, 0, 0, 0],
  limits: [5, -1, -1, -1],
  keepMs: [60_000, 60_000, 60_000, 10_000],
  part: 0,
};
const PASSWORD = 'p@ss/word %';

let stopping: AbortController;
let ended: Promise<void>[] = [];
let logged: string[] = [];
beforeEach(() => {
  stopping = new AbortController();
  ended = [];
  logged = [];
});
afterEach(async () => {
  stopping.abort();
  await Promise.all(ended);
  expect(logged.join('\n')).not.toMatch(/p@ss|p%40ss/);
});

function connect(url: string, passwordFile?: string): ValkeyCounts {
  const note = (fields: object, message: string): void => void logged.push(`${JSON.stringify(fields)} ${message}`);
  const counts = createValkeyCounts({
    url,
    readPassword: passwordFile === undefined ? undefined : async () => await readFile(passwordFile, 'utf8'),
    clock: createClock(),
    log: { info: note, warn: note },
  });
  ended.push(counts.start(stopping.signal));
  return counts;
}

const untilProblem = async (counts: ValkeyCounts, problem: RegExp): Promise<void> => {
  await eventually(`it says ${problem.source}`, () => problem.test(counts.problem() ?? ''), 15_000).catch((error: unknown) => {
    throw new Error(`It says "${counts.problem() ?? ''}"`, { cause: error });
  });
  expect(counts.isShared()).toBe(false);
  expect(await counts.ask('anna', ONE)).toBeUndefined();
};

describeWithValkey('A server with a password', () => {
  let server: ValkeyServer;
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'svc-valkey-'));
    await writeFile(join(dir, 'right'), `${PASSWORD}\nanother line\n`);
    await writeFile(join(dir, 'wrong'), 'p@ss of another\n');
    const reader = 'reader on nopass ~* -@all +ping +select';
    const counter = 'counter on nopass ~{svc-limits}:* -@all +eval +time +hgetall +hset +hdel +pexpire';
    server = await startValkey('--requirepass', PASSWORD, '--user', ...reader.split(' '), '--user', ...counter.split(' '));
  }, 30_000);
  afterAll(async () => {
    await server?.dispose();
    await rm(dir, { recursive: true, force: true });
  });
  const at = (credentials = '', path = ''): string => `redis://${credentials}127.0.0.1:${server.port}${path}`;

  test.each([
    ['in the URL', () => [at(`:${encodeURIComponent(PASSWORD)}@`, '/2')]],
    ['in a file, which counts more than the URL', () => [at('default:wrong@'), join(dir, 'right')]],
    ['of a user with few rights', () => [at('counter:any@')]],
  ] as const)('counts with the right one %s', async (_where, args) => {
    const [url = '', file] = args();
    const counts = connect(url, file);
    await eventually('it is shared', counts.isShared, 15_000);
    expect(counts.problem()).toBeUndefined();
    expect(await counts.ask('anna', ONE)).toMatchObject({ over: 0 });
    await eventually('it is logged', () => logged.length > 0);
    expect(logged).toEqual([expect.stringContaining('are shared with all gateways')]);
  });

  test.each([
    ['a wrong password in the URL', () => [at(':p%40ss@')], /WRONGPASS/],
    ['a wrong password in the file', () => [at(), join(dir, 'wrong')], /WRONGPASS/],
    ['no password', () => [at()], /NOAUTH/],
    ['no file', () => [at(), join(dir, 'none')], /ENOENT/],
    ['a user who may not run scripts', () => [at('reader:x@')], /NOPERM.*eval/],
    ['a database that does not exist', () => [at(`:${encodeURIComponent(PASSWORD)}@`, '/999')], /DB index is out of range/],
    ['TLS where there is none', () => [at().replace('redis:', 'rediss:')], /ETIMEDOUT|SSL|closed/i],
  ] as const)('%s is said', async (_what, args, problem) => {
    const [url = '', file] = args();
    await untilProblem(connect(url, file), problem);
    expect(logged).toHaveLength(1);
  });

  test('a password that is corrected in the file counts without a restart', async () => {
    const file = join(dir, 'later');
    await writeFile(file, 'p@ss of another\n');
    const counts = connect(at(), file);
    await untilProblem(counts, /WRONGPASS/);
    await writeFile(file, `${PASSWORD}\n`);
    await eventually('it is shared', counts.isShared, 15_000);
  });
});

describe('Something else', () => {
  let server: Server | undefined;
  afterEach(() => void server?.close());

  /** Answers each piece of data with the same bytes. */
  async function answering(bytes: string | undefined): Promise<string> {
    const port = await freePort();
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => void (bytes === undefined || socket.write(bytes)));
    }).listen(port, '127.0.0.1');
    return `redis://127.0.0.1:${port}`;
  }

  test.each([
    ['a web server', 'HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n', /Protocol error/],
    ['a server that says only OK', '+OK\r\n', /not that of the script/],
    ['texts in place of numbers', '*4\r\n+none\r\n*0\r\n:1\r\n*0\r\n', /not that of the script/],
    ['a limit that does not exist', '*4\r\n:9\r\n*4\r\n:0\r\n:0\r\n:0\r\n:0\r\n:1\r\n*0\r\n', /not that of the script/],
    ['less than nothing', '*4\r\n:0\r\n*4\r\n:-5\r\n:0\r\n:0\r\n:0\r\n:1\r\n*0\r\n', /not that of the script/],
    ['counts that are none', '*4\r\n:0\r\n*4\r\n:0\r\n:0\r\n:0\r\n:0\r\n:1\r\n*1\r\n+what\r\n', /not that of the script/],
    ['a server without scripts', "-ERR unknown command 'eval'\r\n", /unknown command/],
    ['silence', undefined, /has not answered within/],
  ])('%s is said', async (_what, bytes, problem) => {
    await untilProblem(connect(await answering(bytes)), problem);
  });

  test('nobody listens', async () => {
    await untilProblem(connect(`redis://127.0.0.1:${await freePort()}`), /ECONNREFUSED/);
  });

  test('no such host', async () => {
    await untilProblem(connect('redis://valkey.invalid'), /ENOTFOUND|EAI_AGAIN/);
  });
});

test('the client is loaded only with the setting', () => {
  const isLoadedAfter = (what: string): string => {
    const code = `await import(${JSON.stringify(what)});
      const { createRequire } = await import('node:module');
      console.log(Object.keys(createRequire(import.meta.url).cache).some((path) => path.includes('/iovalkey/')));`;
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '--eval', code], { encoding: 'utf8' });
    return stdout === '' ? stderr : stdout.trim();
  };
  expect([isLoadedAfter('./src/main.ts'), isLoadedAfter('iovalkey')]).toEqual(['false', 'true']);
});
