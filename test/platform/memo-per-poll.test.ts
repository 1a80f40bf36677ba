import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { memoizePerPoll } from '../../src/platform/memo.ts';

let looks: number;
let look: () => number;

beforeEach(() => {
  looks = 0;
  look = memoizePerPoll(() => (looks += 1));
});

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('what happens in the same turn is seen once', async () => {
  expect([look(), look()]).toEqual([1, 1]);
  await Promise.resolve();
  await new Promise<void>((resolve) => process.nextTick(resolve));
  expect(look()).toBe(1);
});

test('each later turn looks again', async () => {
  for (let index = 1; index <= 20; index += 1) {
    expect(look()).toBe(index);
    await turn();
    await turn();
  }
});

test('a look that throws is made again', () => {
  const failing = memoizePerPoll(() => {
    looks += 1;
    throw new Error('no');
  });
  expect(failing).toThrow('no');
  expect(failing).toThrow('no');
  expect(looks).toBe(2);
});

describe('on connections', () => {
  let server: Server;
  let clients: Socket[];
  let seen: number[];

  beforeEach(async () => {
    seen = [];
    server = createServer((socket) => {
      socket.on('data', () => {
        seen.push(look());
        socket.write('a');
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    clients = [];
  });
  afterEach(() => {
    for (const client of clients) client.destroy();
    server.close();
  });

  const portOf = (): number => Number(Reflect.get(Object(server.address()), 'port'));

  async function dial(): Promise<Socket> {
    const client = connect(portOf(), '127.0.0.1');
    clients.push(client);
    await once(client, 'connect');
    await turn();
    return client;
  }

  test('requests that arrived together are judged by one look', async () => {
    for (let index = 0; index < 8; index += 1) await dial();
    for (const client of clients) client.write('a');
    await Promise.all(clients.map((client) => once(client, 'data')));
    expect(seen).toHaveLength(8);
    expect(new Set(seen).size).toBeLessThan(8);
  });

  test('a request that another process sends after a change is judged by a later look, however busy this one is', async () => {
    // It sends a byte on the second connection as soon as the first one is answered, so that the change lies between both.
    const program = `const { connect } = require('node:net');
      const [one, two] = [connect(${portOf()}, '127.0.0.1'), connect(${portOf()}, '127.0.0.1')];
      let left = 300;
      const ask = () => (left-- > 0 ? one.write('a') : process.exit(0));
      one.on('data', () => two.write('a'));
      two.on('data', ask);
      two.on('connect', ask);`;
    const child = spawn(process.execPath, ['-e', program], { stdio: 'ignore' });
    const busy = setInterval(() => look(), 1);
    await once(child, 'exit');
    clearInterval(busy);
    expect(seen).toHaveLength(600);
    expect(new Set(seen).size).toBe(600);
  });
});
