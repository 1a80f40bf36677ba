/** A proxy with TLS and a token in front of a plain server, and certificates for it. */
import { execFile } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer } from 'node:https';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface Certificate {
  readonly key: string;
  readonly cert: string;
  readonly certFile: string;
  /** As `remote.fingerprint` has it. */
  readonly fingerprint: string;
}

/** Signed by itself, for `localhost`. `validity`: as OpenSSL writes times. Default: from now on. */
export async function makeCertificate(
  dir: string,
  name: string,
  validity?: { readonly from: string; readonly until: string },
): Promise<Certificate> {
  const base = path.join(dir, name);
  const [keyFile, certFile, request] = [`${base}.key`, `${base}.pem`, `${base}.csr`] as const;
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', keyFile, '-subj', `/CN=${name}`];
  const names = ['-addext', 'subjectAltName=DNS:localhost'];
  if (validity === undefined) await run('openssl', ['req', '-x509', ...kind, ...names, '-out', certFile]);
  else {
    const config = path.join(dir, `${name}.cnf`);
    await writeFile(path.join(dir, `${name}.index`), '');
    await writeFile(config, authority(dir, name));
    await run('openssl', ['req', '-new', ...kind, ...names, '-out', request]);
    const times = ['-startdate', validity.from, '-enddate', validity.until];
    await run('openssl', ['ca', '-batch', '-selfsign', '-config', config, ...times, '-keyfile', keyFile, '-in', request, '-out', certFile]);
  }
  const [key, cert] = await Promise.all([readFile(keyFile, 'utf8'), readFile(certFile, 'utf8')]);
  const digits = new X509Certificate(cert).fingerprint256.replaceAll(':', '').toLowerCase();
  return { key, cert, certFile, fingerprint: `sha256:${digits}` };
}

/** Only `openssl ca` writes certificates with any times. */
const authority = (dir: string, name: string): string => `[ca]
default_ca = own
[own]
dir = ${dir}
new_certs_dir = ${dir}
database = ${dir}/${name}.index
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
[any]
commonName = supplied
`;

export interface Door {
  readonly port: number;
  /** Headers of the last request for the path; undefined before the first. */
  headersOf(path: string): NodeJS.Dict<string | string[]> | undefined;
  requests(): number;
  /** Ends all connections, so that the next ones see the certificate. */
  show(certificate: Certificate): void;
  close(): Promise<void>;
}

/** Answers 401 to requests without the token. Without one, credentials are passed on. */
export async function openDoor(
  to: string,
  certificate: Certificate,
  token?: string,
  listen = { host: '127.0.0.1', port: 0 },
): Promise<Door> {
  const last = new Map<string, NodeJS.Dict<string | string[]>>();
  let requests = 0;
  const server = createServer({ key: certificate.key, cert: certificate.cert }, (req, res) => {
    requests += 1;
    last.set(req.url ?? '', req.headers);
    if (token !== undefined && req.headers.authorization !== `Bearer ${token}`) return void res.writeHead(401).end('{}');
    const { hostname, port } = new URL(to);
    const { authorization, host: _host, ...others } = req.headers;
    const headers = token === undefined && authorization !== undefined ? { ...others, authorization } : others;
    const passed = request({ hostname, port, path: req.url, method: req.method, headers, agent: false }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    passed.on('error', () => res.destroy());
    res.on('close', () => passed.destroy());
    req.pipe(passed);
  });
  server.listen(listen.port, listen.host);
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    port: address.port,
    headersOf: (asked) => last.get(asked),
    requests: () => requests,
    show({ key, cert }) {
      server.setSecureContext({ key, cert });
      server.closeAllConnections();
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
