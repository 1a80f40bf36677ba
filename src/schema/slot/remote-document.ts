/** The table `[remote]` of a slot: a server that somebody else runs, on another machine or in a cloud. */
import { z } from 'zod';
import { optional } from '../pod/kube-fields.ts';
import { has, type SlotRule } from '../pod/pod-rules.ts';
import { isTable } from '../words/key-case.ts';
import { parseDurationMs } from '../words/quantities.ts';
import { durationWithin } from '../words/quantity-schemas.ts';
import { CAPABILITIES } from './provider-kinds.ts';

/** Without a query, a fragment or a password, which would end up in logs. */
const URL_PATTERN = /^https?:\/\/[A-Za-z0-9.:[\]_-]{1,255}(\/[A-Za-z0-9._~!$&'()*+,;=:@%/-]*)?$/;
const URL_RULE = 'Write a URL such as "https://gpu-box.local:8443/v1", without a user, a query or a fragment';
const AbsoluteFile = z.string().max(4096).startsWith('/', 'Use an absolute path');

export const RemoteDocument = z.strictObject({
  url: z
    .string()
    .max(2000)
    .regex(URL_PATTERN, URL_RULE)
    .refine((url) => !URL_PATTERN.test(url) || URL.canParse(url), URL_RULE)
    .describe('Base URL of an OpenAI-compatible API. Default of its path: "/v1"'),
  credentialFile: optional('File with a token, sent as "Authorization: Bearer"; a new token in it is used at once', AbsoluteFile),
  caFile: optional('File with the certificates, in PEM, that sign the one of the server. Default: those of Node.js', AbsoluteFile),
  fingerprint: optional(
    'SHA-256 of the certificate of the server, which is then trusted whoever signed it and however old it is',
    z.string().regex(/^sha256:([0-9A-Fa-f]{2}:?){32}$/, 'Write "sha256:" and 64 hexadecimal digits, such as "sha256:1a2b…"'),
  ),
  timeout: optional('Maximum time until the first byte of a response. Default: "SVC_FIRST_BYTE_TIMEOUT"', durationWithin('1s', '24h')),
  private: z
    .boolean()
    .default(false)
    .describe('Whether the address may be one that the public internet cannot reach: of this machine, or of the local network'),
  wake: optional(
    'MAC address of the machine, which is woken with Wake-on-LAN when the slot starts',
    z.string().regex(/^([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}$/, 'Write a MAC address such as "aa:bb:cc:dd:ee:ff"'),
  ),
  serves: z
    .array(z.enum(CAPABILITIES))
    .min(1)
    .max(CAPABILITIES.length)
    .default(['chat', 'completion', 'embedding'])
    .describe('What the model serves. Not used where the server says it itself, as this service does'),
});

type Parsed = z.output<typeof RemoteDocument>;

export interface Remote extends Readonly<Omit<Parsed, 'timeout'>> {
  /** Undefined: as the settings say. */
  readonly timeoutMs: number | undefined;
  /** The parameter that requests get: the name of the model there. */
  readonly naming: { readonly set: Record<string, unknown>; readonly force: { readonly model: string } };
}

/** How a server on another machine is reached. No secret: whoever connects reads the files. */
export interface Link extends Remote {
  /** Differs where connections must not be shared. */
  readonly key: string;
  /** Names this service in requests, so that it recognises its own. */
  readonly hop: string;
}

export const resolveRemote = ({ timeout, ...remote }: Parsed, model: string): Remote => ({
  ...remote,
  timeoutMs: timeout === undefined ? undefined : parseDurationMs(timeout),
  naming: { set: {}, force: { model } },
});

const isSecure = ({ url }: Readonly<Record<string, unknown>>): boolean => typeof url === 'string' && url.startsWith('https://');

export const REMOTE_RULES: readonly SlotRule[] = [
  {
    at: [],
    key: 'remote',
    message: 'The provider "remote" needs the "{url}" of the server: set it in "{remote}"',
    holds: ({ provider, remote }) => provider !== 'remote' || isTable(remote),
    cel: "!has(self.provider) || self.provider != 'remote' || has(self.remote)",
  },
  {
    at: [],
    key: 'remote',
    message: 'Only slots with "{provider}" set to "remote" have a server elsewhere: set it, or remove "{remote}"',
    holds: ({ provider, remote }) => provider === 'remote' || !isTable(remote),
    cel: "!has(self.remote) || (has(self.provider) && self.provider == 'remote')",
  },
  {
    at: ['remote'],
    key: 'url',
    message: 'A server without TLS has no certificate: write "https://" in "{url}", or remove "{caFile}" and "{fingerprint}"',
    holds: (remote) => isSecure(remote) || !has(remote, 'caFile', 'fingerprint'),
    cel: "self.url.startsWith('https://') || !(has(self.caFile) || has(self.fingerprint))",
  },
  {
    at: ['remote'],
    key: 'fingerprint',
    message: 'A pinned certificate is trusted whoever signed it: remove "{caFile}" or "{fingerprint}"',
    holds: (remote) => !has(remote, 'caFile') || !has(remote, 'fingerprint'),
    cel: '!has(self.caFile) || !has(self.fingerprint)',
  },
  {
    at: ['remote'],
    key: 'credentialFile',
    message: 'Without TLS, anybody on the way can read the token: write "https://" in "{url}", or set "{private}" to true',
    holds: (remote) => isSecure(remote) || !has(remote, 'credentialFile') || remote['private'] === true,
    cel: "self.url.startsWith('https://') || !has(self.credentialFile) || self.private",
  },
];
