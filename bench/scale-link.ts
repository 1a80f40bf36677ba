/** The connection of one replica to the API server, through a proxy that counts its bytes. */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { runnerIn, type PodAccount } from './cluster-account.ts';

export interface Link {
  readonly port: number;
  /** Bytes that the API server sent. */
  received(): number;
  close(): Promise<void>;
}

export interface Certificate {
  readonly key: string;
  readonly cert: string;
}

/** With a certificate, the link speaks TLS to the replica and plain HTTP to the server. Without one, it passes everything on. */
export async function openLink(port: number, certificate?: Certificate): Promise<Link> {
  let received = 0;
  const sockets = new Set<Socket>();
  const join = (client: Socket): void => {
    const upstream = connect(port, '127.0.0.1');
    upstream.on('data', (chunk: Buffer) => void (received += chunk.length));
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => undefined);
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  };
  const server: Server = certificate === undefined ? createServer(join) : createTlsServer(certificate, join);
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    received: () => received,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A service account for a server that trusts everyone, and the certificate for its links. */
export async function openTrustedAccount(): Promise<
  Pick<PodAccount, 'env' | 'runner' | 'dispose'> & { readonly certificate: Certificate }
> {
  const dir = await mkdtemp(path.join(tmpdir(), 'svc-bench-account-'));
  const key = path.join(dir, 'key.pem');
  const cert = path.join(dir, 'ca.crt');
  const subject = ['-subj', '/CN=bench', '-addext', 'subjectAltName=IP:127.0.0.1'];
  await promisify(execFile)('openssl', [
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-days',
    '2',
    ...subject,
    '-keyout',
    key,
    '-out',
    cert,
  ]);
  await writeFile(path.join(dir, 'token'), 'bench');
  await writeFile(path.join(dir, 'namespace'), 'bench');
  return {
    env: {},
    runner: runnerIn(dir),
    certificate: { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') },
    dispose: async () => await rm(dir, { recursive: true, force: true }),
  };
}
